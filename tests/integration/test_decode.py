"""The stages of decoding, each alone: properties against brute force, and case tables with a fake model."""

from collections.abc import Sequence
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cod3s.decode.choose import (
    Taken,
    Weights,
    choose_first,
    choose_weighed,
    fresh_first,
    is_stale,
    keep_faithful,
    mark_stale,
    pool_offers,
    separate_offers,
)
from cod3s.decode.config import DEFAULT, PAPER, DecodeConfig, find_preset
from cod3s.decode.rerank import (
    rank,
    rank_against_prior,
    score_signatures_backward,
    score_texts,
)
from cod3s.decode.sentences import Candidate, write_candidates
from cod3s.decode.signatures import find_signatures, group_tokens
from cod3s.decode.systems import LISTED_SYSTEMS, PAPER_SYSTEMS, find_system
from cod3s.errors import Cod3sError, UsageError
from cod3s.model.engine import Request
from cod3s.models import BundleModels, RoleModel, open_models
from cod3s.records import Hypothesis, mean_log_prob
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary, train_pieces
from fake_engine import FakeEngine
from made_sentences import made_sentences
from system_names import ALL_NAMES, TWO_STAGES
from tiny_bundle import SOURCES, TinyBundle


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("decode") / "tokens.model"
    train_pieces(made_sentences(300), path, 300)
    return path


@pytest.fixture(scope="module")
def words(pieces: Path) -> Vocabulary:
    return Vocabulary(pieces, ["<effect:sentence>"], SignatureTokens(6, 2, positional=True))


# Stage 1: the exact search


def searching(search: str, best: int) -> DecodeConfig:
    return DecodeConfig(k=1, signature_search=search, signature_beam=best)


def all_signatures(model: RoleModel, source: str) -> list[tuple[float, str]]:
    """Every signature with its log-probability, likeliest first, by looking at all of them."""
    rows: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    for group in group_tokens(model.words):
        weights = model.engine.weigh([model.request(source, tokens) for _, tokens in rows], group)
        rows = [
            (total + float(weight), (*tokens, token))
            for (total, tokens), row in zip(rows, weights, strict=True)
            for token, weight in zip(group, row, strict=True)
        ]
    return sorted(((total, model.words.read_signature(tokens) or "") for total, tokens in rows), reverse=True)


@pytest.mark.parametrize("bits_per_token", [1, 2, 4, 6])
@pytest.mark.parametrize("positional", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_exact_search_finds_the_true_best(
    bits_per_token: int, positional: bool, seed: int, pieces: Path
) -> None:
    words = Vocabulary(pieces, ["<t>"], SignatureTokens(6, bits_per_token, positional))
    model = RoleModel(FakeEngine(seed), words, (words.id("<t>"),))
    found = find_signatures(model, ["a", "b"], searching("exact", 20))
    for source, own in zip(("a", "b"), found, strict=True):
        wanted = all_signatures(model, source)[:20]
        assert [words.read_signature(one.tokens) for one in own] == [name for _, name in wanted]
        assert [one.log_prob for one in own] == pytest.approx([total for total, _ in wanted])


def test_the_exact_search_can_go_on_to_the_last_signature(words: Vocabulary) -> None:
    (found,) = find_signatures(RoleModel(FakeEngine(1), words, (0,)), ["a"], searching("exact", 1000))
    assert len({one.tokens for one in found}) == 64
    assert sum(2.718281828459045**one.log_prob for one in found) == pytest.approx(1.0)


def test_the_exact_search_asks_in_batches(words: Vocabulary) -> None:
    """All sources in step: a few calls, not one a prefix."""
    engine = FakeEngine(2)
    find_signatures(RoleModel(engine, words, (0,)), [str(number) for number in range(20)], searching("exact", 10))
    assert len(engine.calls) < 20 < sum(number for _, number in engine.calls)


def test_on_a_trained_model_exact_agrees_with_brute_force_and_the_beam_is_near(tiny_bundle: TinyBundle) -> None:
    models = open_models(tiny_bundle.exact)
    model = models.signature("effect")
    exact = find_signatures(model, SOURCES, searching("exact", 30))
    for source, own in zip(SOURCES, exact, strict=True):
        wanted = all_signatures(model, source)[:30]
        assert [one.log_prob for one in own] == pytest.approx([total for total, _ in wanted], abs=1e-3)
    beam = find_signatures(model, SOURCES, searching("beam", 30))
    assert [own[0].tokens for own in beam] == [own[0].tokens for own in exact]
    shared = [len({one.tokens for one in a} & {one.tokens for one in b}) for a, b in zip(beam, exact, strict=True)]
    assert min(shared) >= 20


def test_a_beam_of_misplaced_tokens_gives_way_to_the_exact_search(words: Vocabulary) -> None:
    """Positional tokens in the wrong order write no signature; a model that has learned little does that."""
    good = tuple(words.encode_signature("011011"))
    engine = FakeEngine(3, found=lambda request: [Hypothesis(good[::-1], -1.0, 3)] * 10)
    model = RoleModel(engine, words, (0,))
    found = find_signatures(model, ["a"], searching("beam", 5))
    assert found == find_signatures(model, ["a"], searching("exact", 5))


# Reranking

SCORES = st.lists(st.tuples(st.floats(-9, 0), st.floats(-9, 0)), min_size=1, max_size=30)


@given(SCORES, st.floats(0, 2000))
def test_mmi_orders_by_the_weighted_sum(scores: list[tuple[float, float]], weight: float) -> None:
    found = rank([f for f, _ in scores], [b for _, b in scores], weight)
    sums = [f + weight * b for f, b in scores]
    assert [row.score for row in found] == sorted(sums, reverse=True)
    assert all((row.forward, row.backward) == scores[row.position] for row in found)
    assert sorted(row.position for row in found) == list(range(len(scores)))


def test_equal_scores_keep_their_order() -> None:
    assert [row.position for row in rank([-1.0, -1.0, -0.5], [-2.0, -2.0, -2.5], 1.0)] == [0, 1, 2]


def test_the_papers_weight_of_signatures_is_in_effect_the_backward_score() -> None:
    """With lambda 1000 a difference of 0.01 backward outweighs one of 9 forward."""
    assert [row.position for row in rank([-0.1, -9.0], [-3.01, -3.0], 1000.0)] == [1, 0]


@given(st.lists(st.floats(-20, 0), min_size=1, max_size=20), st.integers(0, 1000), st.floats(0, 3))
def test_bins_of_one_size_leave_the_forward_order(log_probs: list[float], count: int, weight: float) -> None:
    found = [Hypothesis((1,), value, 4) for value in log_probs]
    rows = rank_against_prior(found, [count] * len(found), sentences=10_000, bits=8, weight=weight)
    values = [found[row.position].log_prob for row in rows]
    assert values == pytest.approx(sorted(log_probs, reverse=True))


def test_the_prior_takes_back_what_a_large_bin_gives() -> None:
    found = [Hypothesis((1,), log(0.02), 4), Hypothesis((2,), log(0.01), 4), Hypothesis((3,), log(0.001), 4)]
    rows = rank_against_prior(found, [99, 9, 9], sentences=1000, bits=8, weight=1.0)
    assert [row.position for row in rows] == [1, 0, 2]
    assert rows[0].score == pytest.approx(log(0.01) - log(10 / 1256))
    assert rows[0].forward == pytest.approx(log(0.01) / 4)


def test_backward_scores_of_signatures_belong_to_their_source(words: Vocabulary) -> None:
    def scored(request: Request, tokens: Sequence[int]) -> float:
        assert request.source is None
        return -float(sum(request.prefix)) - 10_000 * len(tokens)

    found = [[Hypothesis((1, 2), 0, 2)], [], [Hypothesis((3,), 0, 1), Hypothesis((4,), 0, 1)]]
    sources = ["the baker won", "x", "they"]
    backward = score_signatures_backward(RoleModel(FakeEngine(scored=scored), words, (7,)), sources, found)
    first, last = len(words.encode_text(sources[0])), len(words.encode_text(sources[2]))
    assert backward == [
        [pytest.approx((-10 - 10_000 * first) / (first + 1))],
        [],
        [pytest.approx((-(7 + one) - 10_000 * last) / (last + 1)) for one in (3, 4)],
    ]


def test_equal_texts_are_scored_once_in_one_call(words: Vocabulary) -> None:
    engine = FakeEngine(scored=lambda request, tokens: -float(len(request.source or "")))
    sentences = ["she won", "she won", "she won", "they fell"]
    texts = ["a", "a", "b", "a"]
    scores = score_texts(RoleModel(engine, words, (7,)), sentences, texts)
    lengths = [len(words.encode_text(text)) + 1 for text in texts]
    assert scores == pytest.approx([-len(s) / n for s, n in zip(sentences, lengths, strict=True)])
    assert engine.calls == [("score", 3)]


# Stage 2


def test_both_conventions_of_the_forward_score(words: Vocabulary) -> None:
    """`text`: tokens and end of the text. `original`: the signature's tokens too, in sum and length."""
    tokens = tuple(words.encode_text("she won"))
    written = Hypothesis(tokens, -3.0, len(tokens) + 1)
    engine = FakeEngine(found=lambda request: [written], scored=lambda request, tokens: -1.5)
    model = RoleModel(engine, words, (7,))
    for normalise, wanted in (("text", -3.0 / written.length), ("original", -4.5 / (written.length + 3))):
        config = DecodeConfig(normalise=normalise)
        (((one,),),) = write_candidates(model, ["a"], [["011011"]], config)
        assert one == Candidate("she won", pytest.approx(wanted), pytest.approx(wanted))


def test_a_text_written_in_two_ways_is_one_candidate_with_its_better_score(words: Vocabulary) -> None:
    whole = tuple(words.encode_text("she won"))
    spelt = tuple(words.id(f"{letter}") for letter in "▁")
    found = [Hypothesis((*spelt, *whole), -9.0, 9), Hypothesis(whole, -2.0, 4), Hypothesis((), -0.1, 1)]
    engine = FakeEngine(found=lambda request: found)
    ((own,),) = write_candidates(RoleModel(engine, words, (7,)), ["a"], [["000000"]], DEFAULT)
    assert [(one.text, one.forward) for one in own] == [("she won", -0.5)]


def candidate(text: str, score: float = 0.0, hamming: int | None = None) -> Candidate:
    return Candidate(text, score, score, hamming=hamming)


CHOICES = [
    ("the best of each", [["a", "b"], ["c", "d"]], 1, [["a"], ["c"]]),
    ("two of each", [["a", "b"], ["c", "d"]], 2, [["a", "b"], ["c", "d"]]),
    ("no text twice", [["a", "b"], ["a", "c"]], 1, [["a"], ["c"]]),
    ("not even in capitals", [["a"], ["A", "c"]], 1, [["a"], ["c"]]),
    ("a bin with nothing new gives none", [["a"], ["a"]], 1, [["a"]]),
    ("a bin with nothing at all", [[], ["a"]], 1, [["a"]]),
]


@pytest.mark.parametrize(("why", "bins", "per_bin", "wanted"), CHOICES, ids=[why for why, *_ in CHOICES])
def test_choose(why: str, bins: list[list[str]], per_bin: int, wanted: list[list[str]]) -> None:
    found = choose_first([[candidate(text) for text in own] for own in bins], per_bin, Taken())
    assert [[one.text for one in own] for own in found.values()] == wanted


NORTH, EAST, NORTHEAST = (np.array(one, np.float32) for one in ([0, 1], [1, 0], [0.6, 0.8]))
WEIGHED = [
    ("the score alone", Weights(0, 0), [("a", -1, 3, NORTH), ("b", -2, 0, EAST)], "a"),
    ("a bit costs", Weights(1, 0), [("a", -1, 3, NORTH), ("b", -2, 0, EAST)], "b"),
    ("equal ones stay in order", Weights(1, 0), [("a", -1, 1, NORTH), ("b", -2, 0, EAST)], "a"),
    ("nearness to the answer before costs", Weights(0, 5), [("a", -1, 0, NORTHEAST), ("b", -2, 0, EAST)], "b"),
    ("but not more than it weighs", Weights(0, 1), [("a", -1, 0, NORTHEAST), ("b", -2, 0, EAST)], "a"),
    ("a text that was taken is out", Weights(0, 0), [("North", -1, 0, NORTH), ("b", -2, 0, EAST)], "b"),
]


@pytest.mark.parametrize(("why", "weights", "own", "wanted"), WEIGHED, ids=[why for why, *_ in WEIGHED])
def test_choose_weighed(why: str, weights: Weights, own: list[tuple[str, float, int, Any]], wanted: str) -> None:
    first = [replace(candidate("north"), vector=NORTH)]
    second = [replace(candidate(text, score, off), vector=vector) for text, score, off, vector in own]
    chosen = choose_weighed(separate_offers([first, second]), 1, Taken(), weights)
    assert [answer.text for answer in chosen[1]] == [wanted]


def test_a_stale_candidate_is_only_taken_for_want_of_another() -> None:
    stale = replace(candidate("a", -1, 0), vector=NORTH, stale=True)
    fresh = replace(candidate("b", -9, 9), vector=NORTH)
    assert choose_weighed(separate_offers([[stale, fresh]]), 1, Taken(), Weights(1, 1)) == {0: [fresh]}
    assert choose_weighed(separate_offers([[stale]]), 1, Taken(), Weights(1, 1)) == {0: [stale]}


def test_the_bins_with_the_best_candidates_come_first_if_there_are_too_many() -> None:
    bins = [[candidate("a", -3)], [candidate("b", -1)], [], [candidate("c", -2)]]
    assert texts_of(choose_first(bins, 1, Taken(), most=2)) == {1: ["b"], 3: ["c"]}
    seen = [[replace(one, vector=NORTH, hamming=0) for one in own] for own in bins]
    chosen = choose_weighed(separate_offers(seen), 1, Taken(), Weights(1, 1), most=2)
    assert texts_of(chosen) == {1: ["b"], 3: ["c"]}
    assert [*chosen] == [1, 3], "in the order of the choice"
    assert choose_weighed(separate_offers([]), 1, Taken(), Weights(1, 1), most=2) == {}
    assert choose_weighed(separate_offers([[], []]), 1, Taken(), Weights(1, 1), most=1) == {}


def texts_of(chosen: dict[int, list[Candidate]]) -> dict[int, list[str]]:
    return {number: [answer.text for answer in answers] for number, answers in chosen.items()}


@pytest.mark.parametrize("most", [1, 3, 6])
@pytest.mark.parametrize("per_bin", [1, 2])
def test_the_weighed_choice_takes_the_cheapest_candidate_at_every_step(most: int, per_bin: int) -> None:
    """The same steps, each over all that is left, with plain lists."""
    random = np.random.default_rng(most)
    signatures = ["".join(row) for row in random.choice(["0", "1"], (7, 16)).tolist()]
    vectors = random.normal(size=(30, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pool = [
        replace(
            candidate(f"text {number % 25}", float(random.normal())),
            vector=vectors[number % 25],
            realised=signatures[number % 7],
            stale=number % 6 == 0,
        )
        for number in range(30)
    ]
    bins = [pool[start::7] for start in range(7)]
    weights = Weights(0.1, 2.0)
    offers = pool_offers(bins, signatures)
    left: set[int] = set(range(7))
    taken: dict[int, list[str]] = {}
    chosen_vectors: list[Any] = []

    def cost(number: int, column: int) -> tuple[bool, float]:
        one = offers.candidates[column]
        near = max((float(one.vector @ vector) for vector in chosen_vectors), default=0.0)
        return one.stale, 0.1 * offers.bits_off[number, column] + 2.0 * near - one.score

    free = set(range(len(offers.candidates)))
    for _ in range(most):
        _, number = min((cost(number, column), number) for number in left for column in free)
        left.remove(number)
        for _ in range(per_bin):
            best = min(free, key=lambda column: cost(number, column))
            free.remove(best)
            taken.setdefault(number, []).append(offers.candidates[best].text)
            chosen_vectors.append(offers.candidates[best].vector)
    chosen = choose_weighed(offers, per_bin, Taken(), weights, most=most)
    assert [*texts_of(chosen).items()] == [*taken.items()]


def test_faithful_candidates_come_first_or_alone() -> None:
    own = [candidate("a", -1, 5), candidate("b", -2, 2), candidate("c", -3, 2), candidate("d", -4, 0)]
    assert [one.text for one in keep_faithful(own, mode="rerank", within=2)] == ["d", "b", "c", "a"]
    assert [one.text for one in keep_faithful(own, mode="filter", within=2)] == ["b", "c", "d"]
    assert [one.text for one in keep_faithful(own, mode="none", within=2)] == ["a", "b", "c", "d"]


# Options and systems

WRONG = [
    ({"k": 0}, "k is 0"),
    ({"beam": -1}, "beam is -1"),
    ({"search": "beem"}, "search cannot be 'beem'"),
    ({"temperature": 0.0}, "temperature"),
    ({"min_hamming": -1}, "min_hamming"),
    ({"beams": 4}, "no option 'beams'"),
    ({"sentence_weight": float("nan")}, "sentence_weight"),
]


@pytest.mark.parametrize(("values", "message"), WRONG, ids=[message for _, message in WRONG])
def test_options_that_make_no_sense_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(Cod3sError, match=message):
        DEFAULT.with_values(**values)


def test_the_papers_options_are_the_papers() -> None:
    assert find_preset("paper") is PAPER
    assert (PAPER.signature_beam, PAPER.beam, PAPER.signature_weight, PAPER.sentence_weight) == (
        100,
        40,
        1000,
        0.3,
    )
    assert (PAPER.min_hamming, PAPER.if_too_few, PAPER.top_k, PAPER.samples) == (2, "refill", 40, 40)


PAPER_ROWS = {  # tables 2 and 5: signature search, its rerank, sentence search, its rerank, Hamming
    "cod3s-beam-beam": ("beam", "none", "beam", "none", 2),
    "cod3s-beam-mmi": ("beam", "none", "beam", "mmi", 2),
    "cod3s-mmi-mmi": ("beam", "mmi", "beam", "mmi", 2),
    "cod3s-mmi-mmi-rs": ("beam", "mmi", "sample", "mmi", 2),
    "cod3s-mmi-mmi-rs-no-hamming": ("beam", "mmi", "sample", "mmi", 0),
}


@pytest.mark.parametrize("name", PAPER_ROWS)
def test_every_row_of_the_papers_tables_has_a_name(name: str) -> None:
    config = find_system(name).configure(DEFAULT)
    found = (config.signature_search, config.rerank_signatures, config.search, config.rerank_sentences)
    assert (*found, config.min_hamming) == PAPER_ROWS[name]


def test_baselines_and_oracles_have_names_too() -> None:
    for name in ("s2s", "s2s-sigs", "s2s-rs", "dpc", "cod3s", "cod3s-exact-mmi", "cod3s-prior-beam"):
        assert find_system(name).name == name
    assert {*PAPER_ROWS, "s2s", "s2s-sigs", "s2s-rs", "dpc"} == set(PAPER_SYSTEMS) < set(LISTED_SYSTEMS)
    assert find_system("cod3s-oracle-mmi").oracle
    assert not find_system("cod3s-mmi-mmi").oracle
    assert find_system("cod3s-mmi-mmi-rs-faithful").configure(DEFAULT).bin_fit == "rerank"
    assert find_system("cod3s-mmi-mmi-rs").configure(DEFAULT).bin_fit == "none"
    assert not find_system("cod3s-mmi-mmi-fresh").configure(PAPER).allow_repeats
    assert find_system("cod3s-mmi-mmi").configure(PAPER).allow_repeats


def test_every_name_is_parsed_into_the_options_that_its_words_say() -> None:
    assert len(ALL_NAMES) == 221
    for name in ALL_NAMES:
        system = find_system(name)
        values = system.values
        assert system.name == name
        assert system.oracle == ("oracle" in name)
        assert (values.get("min_hamming") == 0) == ("no-hamming" in name)
        if name in TWO_STAGES:
            sentence = name.split("-", 2)[2]
            assert values["search"] == ("sample" if "rs" in sentence.split("-") else "beam")
            assert values["rerank_sentences"] == ("mmi" if sentence.startswith("mmi") else "none")
            assert values["allow_repeats"] == ("fresh" not in name)
            assert values["bin_fit"] == next(
                (value for word, value in (("faithful", "rerank"), ("weighed", "weigh")) if word in name), "none"
            )


MISSPELT = [
    ("cod3s-mmi-mni", "did you mean 'cod3s-mmi-mmi'?", "one letter"),
    ("cod3s-exakt-mmi-rs-weihed", "did you mean 'cod3s-exact-mmi-rs-weighed'?", "two words"),
    ("COD3S_mmi_mmi", "did you mean 'cod3s-mmi-mmi'?", "another spelling"),
    ("s2ss", "did you mean 's2s'?", "a baseline"),
    ("cod3s-mmi", "cod3s-SIGNATURE-SENTENCE", "a part is missing"),
    ("cod3s-mmi-mmi-fresh-no-hamming", "cod3s-SIGNATURE-SENTENCE", "the wrong order"),
    ("cod3s-oracle-mmi-no-hamming", "cod3s-SIGNATURE-SENTENCE", "an oracle has no Hamming rule"),
    ("", "s2s-rs", "nothing"),
]


@pytest.mark.parametrize(("name", "hint", "why"), MISSPELT, ids=[row[2] for row in MISSPELT])
def test_an_unknown_system_is_wrong_usage_with_a_way_out(name: str, hint: str, why: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_system(name)
    assert hint in raised.value.hint


def test_a_misspelt_system_is_told_the_nearest() -> None:
    with pytest.raises(Cod3sError) as raised:
        find_system("cod3s-mmi-mni")
    assert "cod3s-mmi-mmi" in raised.value.hint
    with pytest.raises(Cod3sError) as raised:
        find_system("zzz")
    assert "s2s-rs" in raised.value.hint


def test_the_signature_role_is_played_by_the_sentence_role_where_it_is_absent(tiny_bundle: TinyBundle) -> None:
    from dataclasses import replace

    models = open_models(tiny_bundle.exact)
    roles = {relation: dict(own) for relation, own in models.facts.models.items()}
    for own in roles.values():
        del own["signature"]
    without = BundleModels(
        models.folder, replace(models.facts, models=roles), models.vocabulary, lambda name: FakeEngine()
    )
    assert without.signature("effect") == without.sentence("effect")
    assert models.signature("effect").start != models.sentence("effect").start


def test_mean_log_prob_counts_the_end() -> None:
    assert mean_log_prob(Hypothesis((1, 2, 3), -2.0, 4)) == -0.5


STALE = [
    ("the boy broke his leg", "the boy broke his leg", True, "a copy"),
    ("the boy broke his leg", "he broke the leg", True, "other small words are nothing new"),
    ("he lost his job", "he didn't have a job", False, "what was not there is something new"),
    ("she moved to another city", "she moves to another city", True, "other forms of the same words"),
    ("the milk had gone sour", "he put the milk in the milk", True, "a word twice"),
    ("he was tired", "he slept and slept", True, "a word twice, whatever was meant"),
    ("it rained", "the street and the roof were wet", False, "small words may come again"),
    ("it rained", "it was", True, "small words alone say nothing"),
    ("", "it rained", False, "anything is new to nothing"),
]


@pytest.mark.parametrize(("source", "text", "stale", "why"), STALE, ids=[row[3] for row in STALE])
def test_what_only_repeats_is_stale(source: str, text: str, stale: bool, why: str) -> None:
    assert is_stale(source, text) == stale, why


def test_stale_candidates_come_behind_the_others_and_keep_their_order() -> None:
    texts = ["it rained", "we got wet", "it rained again and again", "she laughed"]
    rows = [Candidate(text, -place, -place) for place, text in enumerate(texts)]
    found = [one.text for one in fresh_first(mark_stale("it rained", rows))]
    assert found == ["we got wet", "she laughed", "it rained", "it rained again and again"]
