"""Metrics against values worked out by hand, closed forms, and what must hold for any set."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cod3s.encode.protocol import unit
from cod3s.errors import SignatureError
from cod3s.metrics.fidelity import Fidelity, Request, by_bin_size, by_rank, fidelity, other_answers_hamming
from cod3s.metrics.inference import Guess, score_inference
from cod3s.metrics.lexical import bleu, bleu_diversity, distinct_ngrams, lexical_settings, self_bleu
from cod3s.metrics.novelty import distinct_classes, equivalence_classes, utility
from cod3s.metrics.pair_scores import SCORERS, choice_credits, combine, plausibility_bar
from cod3s.metrics.semantic import cosine_distances, distinct, mean_distance, vendi_score
from cod3s.metrics.significance import bootstrap_interval, compare_all, holm, wilcoxon
from cod3s.text import complete

TEXTS = st.lists(
    st.sampled_from(["rain", "it rained", "it rained hard", "snow fell", "the snow fell", "a b c d"]), max_size=4
)


def test_bleu_by_hand() -> None:
    for text, reference, order, wanted, reason in (
        ("the cat sat", "the cat sat", 2, 100.0, "the same text"),
        ("the cat sat", "the dog sat", 1, 100 * 2 / 3, "two of three words, equal length"),
        ("the cat sat", "the dog sat", 2, 0.0, "no bigram in common, no smoothing: exp would give 40.8"),
        (
            "the cat sat",
            "the cat ran",
            2,
            100 * math.sqrt(2 / 3 * 1 / 2),
            "two of three words, one of two bigrams",
        ),
        ("the cat", "the cat sat down", 1, 100 * math.exp(1 - 4 / 2), "all words right, but half the length"),
        ("The cat sat", "the cat sat", 1, 100 * 2 / 3, "case counts"),
        ("it rained.", "it rained", 1, 100 * 2 / 3, "13a takes the full stop for a word"),
        ("rain", "rain", 2, 0.0, "one word has no bigram"),
        ("the the the", "the cat sat", 1, 100 / 3, "a word counts as often as the reference has it"),
        ("", "the cat sat", 1, 0.0, "nothing said"),
        ("雨が降った", "雨が降った", 1, 100.0, "one token in a script without spaces"),
    ):
        assert bleu(text, reference, order) == pytest.approx(wanted), reason


def test_lexical_diversity_by_hand() -> None:
    short = 100 - 100 * math.exp(-1)
    for texts, wanted1, wanted2, reason in (
        ([], 0, 0, "no answers"),
        (["it rained"], 0, 0, "one answer differs from nothing"),
        (["it rained"] * 3, 0, 0, "identical answers"),
        (["rain", "rain"], 0, 0, "identical one-word answers: the original's BLEU-2 has them 100 apart"),
        (["rain", "snow"], 100, 100, "nothing in common"),
        (["the cat sat", "the dog sat"], 100 / 3, 100, "both directions: two of three words, no bigram"),
        (
            ["the cat", "the cat", "it rained"],
            100 * 4 / 6,
            100 * 4 / 6,
            "4 of 6 ordered pairs at 100, equals at 0",
        ),
        (
            ["the cat", "the cat sat down"],
            (short + 50) / 2,
            (short + 100 - 100 * math.sqrt(1 / 2 * 1 / 3)) / 2,
            "not symmetric: brevity one way, precision the other",
        ),
    ):
        assert bleu_diversity(texts, 1) == pytest.approx(wanted1), reason
        assert bleu_diversity(texts, 2) == pytest.approx(wanted2), reason
    for texts, order, wanted, reason in (
        ([], 1, 0, "nothing said"),
        (["rain"], 2, 0, "no bigrams"),
        (["a b", "a c"], 1, 3 / 4, "a, b, c of four"),
        (["a b", "a b"], 2, 1 / 2, "one bigram twice"),
        (["rain rain"], 1, 1 / 2, "repetition inside one answer counts"),
    ):
        assert distinct_ngrams(texts, order) == pytest.approx(wanted), reason
    for texts, wanted, reason in (
        ([], 100, "defined: no diversity"),
        (["it rained"], 100, "defined: no diversity"),
        (["rain", "rain"], 100, "identical, though too short for 4-grams"),
        (["it rained all day long"] * 4, 100, "identical"),
        (["it rained", "snow fell"], 0, "nothing in common"),
    ):
        assert self_bleu(texts) == pytest.approx(wanted), reason


@settings(deadline=None, max_examples=30)
@given(TEXTS)
def test_diversities_stay_in_range_and_ignore_the_order(texts: list[str]) -> None:
    for order in (1, 2):
        assert 0 <= bleu_diversity(texts, order) <= 100
        assert bleu_diversity(texts[::-1], order) == pytest.approx(bleu_diversity(texts, order))
    assert 0 <= self_bleu(texts) <= 100


def test_lexical_figures_say_how_they_were_made() -> None:
    made = lexical_settings()
    assert {"smooth:none", "tok:13a", "case:mixed"} <= set(made["bleu"].split("|"))
    assert "smooth:exp" in made["self_bleu"]


def test_semantic_diversity_has_closed_forms() -> None:
    half = np.array([[1, 0], [0.5, math.sqrt(0.75)]])
    for vectors, distance, vendi, reason in (
        (np.zeros((0, 2)), 0, 0, "no answers"),
        (np.ones((1, 4)) / 2, 0, 1, "one answer says one thing"),
        (np.tile([[1.0, 0]], (5, 1)), 0, 1, "five answers in the same direction"),
        (np.eye(4), 1, 4, "orthogonal answers: as many things as answers"),
        (half, 0.5, math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25)), "eigenvalues (1 ± cosine) / 2"),
    ):
        texts = [f"answer {number}" for number in range(len(vectors))]
        distances = cosine_distances(texts, vectors.astype(np.float32))
        assert mean_distance(distances) == pytest.approx(distance, abs=1e-6), reason
        assert vendi_score(distances) == pytest.approx(vendi, abs=1e-5), reason
    opposite = np.array([[1.0, 0], [-1, 0]], np.float32)
    assert mean_distance(cosine_distances(["a", "b"], opposite)) == pytest.approx(2)


def test_equal_texts_are_at_distance_zero_even_without_a_vector() -> None:
    distances = cosine_distances(["ꙮ", "ꙮ", "rain"], np.array([[0, 0], [0, 0], [1, 0]], np.float32))
    assert distances.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0]]
    assert vendi_score(distances) == pytest.approx(math.exp(-2 / 3 * math.log(2 / 3) - 1 / 3 * math.log(1 / 3)))


LINE = np.array([[0.0, 0.05, 0.2, 0.05], [0.05, 0.0, 0.15, 0.3], [0.2, 0.15, 0.0, 0.6], [0.05, 0.3, 0.6, 0.0]])


def test_distinct_answers_are_kept_greedily() -> None:
    for distances, threshold, kept, reason in (
        (np.zeros((0, 0)), 0.1, [], "no answers"),
        (np.zeros((3, 3)), 0.0, [0, 1, 2], "nothing is closer than 0: the paper's 10.0 at threshold 0"),
        (np.zeros((3, 3)), 0.1, [0], "identical answers"),
        (LINE, 0.1, [0, 2], "1 and 3 repeat 0"),
        (LINE, 0.16, [0, 2], "2 is near 1 but 1 was not kept: only kept answers rule others out"),
        (LINE, 0.05, [0, 1, 2, 3], "exactly at the threshold is not closer"),
        (LINE, 0.25, [0], "all repeat the first"),
    ):
        assert distinct(distances, threshold) == kept, reason


@given(st.integers(0, 8), st.integers(0, 2**32 - 1))
def test_kept_answers_are_apart_and_the_others_are_not(number: int, seed: int) -> None:
    vectors = unit(np.random.default_rng(seed).normal(size=(number, 3)).astype(np.float32))
    distances = cosine_distances([str(place) for place in range(number)], vectors)
    kept = distinct(distances, 0.5)
    assert all(distances[a, b] >= 0.5 for a in kept for b in kept if a != b)
    assert all(any(distances[a, b] < 0.5 for b in kept if b < a) for a in range(number) if a not in kept)
    assert min(number, 1) - 1e-6 <= vendi_score(distances) <= number + 1e-6


def test_answers_fall_into_classes_in_order() -> None:
    for distances, classes, reason in (
        ([], [], "no answers"),
        ([[0.0]], [0], "one answer"),
        ([[0, 0.05], [0.05, 0]], [0, 0], "closer than the bar"),
        ([[0, 0.1], [0.1, 0]], [0, 1], "at the bar: not closer"),
        ([[0, 0.09, 0.2], [0.09, 0, 0.09], [0.2, 0.09, 0]], [0, 0, 0], "like the second, which is like the first"),
        ([[0, 0.2, 0.09], [0.2, 0, 0.09], [0.09, 0.09, 0]], [0, 1, 0], "like both: it joins the earliest"),
    ):
        matrix = np.array(distances, np.float64).reshape(len(distances), len(distances))
        assert equivalence_classes(matrix) == classes, reason
        assert distinct_classes(classes) == len(set(classes))


def test_utility_discounts_later_answers_and_repeats() -> None:
    for classes, k, wanted, reason in (
        ([], 3, 0.0, "no answers"),
        ([0, 1, 2], 3, 1.0, "all new: the weights sum to 1"),
        ([0, 0, 0], 3, 1 / 2.44, "1 of 1 + .8 + .64"),
        ([0, 0, 1], 3, 1.64 / 2.44, "the first and the third"),
        ([0, 1], 3, 1.8 / 2.44, "a missing answer adds nothing"),
        ([0, 1, 2], 2, 1.0, "only the first k count"),
    ):
        assert utility(classes, k) == pytest.approx(wanted), reason


def test_a_statement_is_completed_as_one_sentence() -> None:
    assert complete("{source}, so {target}", "The well ran dry.", "We moved.") == "The well ran dry, so we moved."
    assert complete("{source} because {target}", "I left", "I'm {so} tired") == "I left because I'm {so} tired."


def test_fidelity_by_hand() -> None:
    requests = [Request("0000", "0000", 0, 5), Request("0000", "0011", 1, 2000)]
    assert fidelity(requests) == Fidelity(requests=2, hamming=1.0, bits_right=0.75, in_bin=0.5)
    assert fidelity([]) is None
    assert {rank: figures.hamming for rank, figures in by_rank(requests).items()} == {0: 0.0, 1: 2.0}
    assert {low: figures.in_bin for low, figures in by_bin_size(requests).items()} == {1: 1.0, 1000: 0.0}
    with pytest.raises(SignatureError, match="bits"):
        fidelity([Request("0000", "000", 0, 0)])


def test_without_control_a_request_is_as_near_to_any_answer() -> None:
    obeyed, ignored = (
        [Request(asked, realized, 0, 0) for asked, realized in zip(("0000", "1111"), row, strict=True)]
        for row in (("0000", "1111"), ("0011", "0011"))
    )
    assert (fidelity(obeyed), other_answers_hamming([obeyed])) == (Fidelity(2, 0.0, 1.0, 1.0), 4.0)
    assert (fidelity(ignored), other_answers_hamming([ignored])) == (Fidelity(2, 2.0, 0.5, 0.0), 2.0)
    assert other_answers_hamming([obeyed[:1]]) is None


def test_the_rank_of_the_gold_signature_by_hand() -> None:
    scores = score_inference(
        [
            Guess("0000", ("0000", "1111", "0011")),
            Guess("0001", ("1111", "0000", "0011")),
            Guess("1000", ("0111", "0110", "1111")),
        ]
    )
    assert scores.found == pytest.approx(1 / 3)
    assert scores.median_rank == 4  # 1, and two that are not found: after the last
    recalls = {(recall.depth, recall.radius): recall.recall for recall in scores.recalls}
    assert recalls[1, 0] == recalls[3, 0] == recalls[1, 1] == pytest.approx(1 / 3)
    assert recalls[3, 1] == pytest.approx(2 / 3)
    assert recalls[3, 3] == 1


@given(st.lists(st.tuples(st.integers(0, 15), st.permutations(range(16))), min_size=1, max_size=5))
def test_recall_grows_with_depth_and_radius(drawn: list[tuple[int, list[int]]]) -> None:
    guesses = [Guess(f"{gold:04b}", tuple(f"{value:04b}" for value in ranked)) for gold, ranked in drawn]
    scores = score_inference(guesses)
    assert scores.found == 1
    recalls = {(recall.depth, recall.radius): recall.recall for recall in scores.recalls}
    for (depth, radius), recall in recalls.items():
        assert recall <= recalls.get((depth, radius + 1), 1)
        assert recall <= recalls[10, radius] or depth == 10


def test_scores_are_combined_unless_a_part_is_missing() -> None:
    scores = {"relevance": 0.4, "forward": -2.0, "target_alone": -3.0, "backward": -1.0, "source_alone": -4.0}
    wanted = {"relevance": 0.4, "forward": -2.0, "pmi": 1.0, "backward": -1.0, "backward_pmi": 3.0, "mmi": -2.3}
    combined = {scorer: combine(scores, scorer) for scorer in SCORERS}
    assert combined == pytest.approx({**wanted, "critic": None})
    assert combine({"relevance": 0.4}, "mmi") is None


def test_choices_are_counted_and_ties_share_the_credit() -> None:
    assert choice_credits([(1, 2), (3, 1)], [1, 0]) == [1.0, 1.0]
    assert choice_credits([(1, 2), (3, 1)], [0, 0]) == [0.0, 1.0]
    assert choice_credits([(1, 1), (1, 1)], [0, 1]) == [0.5, 0.5]
    assert plausibility_bar([1, 2, 7]) == 2
    assert plausibility_bar([]) is plausibility_bar([1, None]) is None


def test_the_signed_rank_test_by_hand() -> None:
    for a, b, wanted, reason in (
        ([1, 2, 3], [1, 2, 3], 1.0, "nothing differs"),
        ([], [], 1.0, "nothing to compare"),
        ([5], [1], 1.0, "one difference can always go either way"),
        ([2, 4, 6, 8, 10], [1, 2, 3, 4, 5], 2 / 32, "five of one sign: 2 of the 2^5 signings are as extreme"),
        ([2, 4, 6, 8, 10, 3], [1, 2, 3, 4, 5, 3], 2 / 32, "a zero difference takes no part"),
        ([1] * 16, [0] * 16, math.erfc(4 / math.sqrt(2)), "all tied: z = 68 / 17, variance 16 · 8.5² / 4"),
    ):
        assert wilcoxon(a, b) == wilcoxon(b, a) == pytest.approx(wanted), reason


def test_holm_by_hand() -> None:
    for values, wanted, reason in (
        ([], [], "nothing compared"),
        ([0.03], [0.03], "one comparison needs no correction"),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06], "times 3, 2, 1 in order of size, never below the one before"),
        ([0.5, 0.6], [1.0, 1.0], "never above 1"),
    ):
        assert holm(values) == pytest.approx(wanted), reason


@given(st.lists(st.floats(0, 1)))
def test_holm_keeps_the_order_and_lowers_nothing(values: list[float]) -> None:
    corrected = holm(values)
    assert all(after >= before for before, after in zip(values, corrected, strict=True))
    ordered = [after for _, after in sorted(zip(values, corrected, strict=True))]
    assert all(a <= b for a, b in pairwise(ordered))


def test_systems_are_compared_on_the_sources_that_both_answered() -> None:
    one = {str(number): float(number) for number in range(8)}
    two = {str(number): number - 1.0 for number in range(1, 8)}
    (row,) = compare_all({"one": one, "two": two})
    assert (row.a, row.b, row.sources) == ("one", "two", 7)
    assert row.difference == pytest.approx(1.0)
    assert row.p == row.holm < 0.05


def test_the_bootstrap_interval_is_repeatable_and_holds_the_mean() -> None:
    values = np.random.default_rng(5).normal(3, 1, 200).tolist()
    low, high = bootstrap_interval(values, seed=1)
    assert (low, high) == bootstrap_interval(values, seed=1)
    assert low < np.mean(values) < high
    # 1.96 standard errors either way, to within a tenth of it
    assert high - low == pytest.approx(2 * 1.96 * np.std(values) / math.sqrt(200), rel=0.1)
    assert bootstrap_interval([2.0], seed=1) == (2.0, 2.0)
