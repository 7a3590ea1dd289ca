"""Selection: four methods behind one interface, and what happens to input that nobody should give."""

import json
import random
import resource
import sys
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cod3s
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError, VectorError
from cod3s.selection import METHODS, Selection, default_min_hamming
from cod3s.selection.choose import MOST_FOR_DPP
from cod3s.selection.methods.greedy import choose_dpp, choose_greedily, choose_mmr
from cod3s.selection.methods.kmedoids import choose_kmedoids
from cod3s.signatures import from_text, hamming, keep_apart, pack, random_code
from paraphrase_groups import LATER_SETS, SETS, SETS_IN_OTHER_WORDS, ParaphraseSet

CANDIDATES = [
    "He called a locksmith.",
    "he called a locksmith",
    "He phoned a locksmith.",
    "She slept in the car.",
    "He slept in the car.",
    "The landlord let him in.",
    "The landlord had to let him in.",
    "He was late for work.",
]
every_method = pytest.mark.parametrize("method", METHODS)


def unit_rows(number: int, dim: int = 8, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((number, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def indices(selection: Selection) -> list[int]:
    return [one.index for one in selection.selected]


@every_method
def test_of_two_forms_of_one_sentence_the_better_is_kept_and_stands_for_the_other(
    method: str, static: Encoder
) -> None:
    scores = [0.1, 0.9, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    found = cod3s.select(CANDIDATES, 7, scores=scores, method=method, encoder=static)
    chosen = {one.index: one for one in found.selected}
    assert 0 not in chosen
    assert 0 in chosen[1].duplicates
    assert chosen[1].text == "he called a locksmith"
    assert chosen[1].score == 0.9


@every_method
def test_paraphrases_give_way_to_other_meanings(method: str, static: Encoder) -> None:
    """Four things happen in the eight candidates; each method finds one sentence of each."""
    events = [0, 0, 0, 1, 1, 2, 2, 3]
    found = cod3s.select(CANDIDATES, 4, method=method, encoder=static)
    assert sorted(events[index] for index in indices(found)) == [0, 1, 2, 3]


@pytest.mark.parametrize("paraphrases", [*SETS, *LATER_SETS], ids=lambda paraphrases: paraphrases.topic)
def test_the_default_says_every_meaning_once(paraphrases: ParaphraseSet, static: Encoder) -> None:
    selection = cod3s.select(paraphrases.candidates, len(paraphrases.groups), encoder=static)
    assert selection.method == "dpp"
    assert paraphrases.covered(indices(selection)) == set(range(len(paraphrases.groups)))


@pytest.mark.parametrize("paraphrases", [*SETS, *LATER_SETS], ids=lambda paraphrases: paraphrases.topic)
def test_scores_that_favour_one_meaning_do_not_hide_the_others(
    paraphrases: ParaphraseSet, static: Encoder
) -> None:
    for scores in (paraphrases.scores, paraphrases.scores[::-1]):
        selection = cod3s.select(paraphrases.candidates, len(paraphrases.groups), scores=scores, encoder=static)
        assert paraphrases.covered(indices(selection)) == set(range(len(paraphrases.groups)))


def test_the_default_covers_more_meanings_than_any_method_by_name(static: Encoder) -> None:
    """Candidates in random order; docs/measured/select.md has the figures."""
    draw = random.Random(5)
    shuffled = [
        (paraphrases, draw.sample(range(len(paraphrases.candidates)), len(paraphrases.candidates)))
        for paraphrases in SETS_IN_OTHER_WORDS
        for _ in range(5)
    ]

    def coverage(method: str) -> float:
        """The mean share of groups of which something is chosen."""
        shares = []
        for paraphrases, order in shuffled:
            candidates = [paraphrases.candidates[place] for place in order]
            selection = cod3s.select(candidates, len(paraphrases.groups), method=method, encoder=static)
            covered = paraphrases.covered([order[index] for index in indices(selection)])
            shares.append(len(covered) / len(paraphrases.groups))
        return float(np.mean(shares))

    default = coverage("auto")
    assert default > 0.97
    assert all(coverage(method) <= default for method in ("dpp", "mmr", "kmedoids", "signatures"))


@pytest.mark.parametrize(
    ("count", "options", "method"),
    [
        (100, {}, "dpp"),
        (MOST_FOR_DPP + 1, {}, "signatures"),
        (100, {"strict": True}, "signatures"),
        (100, {"min_hamming": 10}, "signatures"),
        (100, {"method": "mmr"}, "mmr"),
    ],
)
def test_the_result_names_the_method_that_ran(count: int, options: dict[str, Any], method: str) -> None:
    vectors = np.resize(unit_rows(97, 4), (count, 4))
    selection = cod3s.select([f"text {n}" for n in range(count)], 3, vectors=vectors, **options)
    assert selection.method == method


def test_a_selection_is_a_list_of_what_was_chosen(static: Encoder) -> None:
    selection = cod3s.select(CANDIDATES, 3, encoder=static)
    assert len(selection) == 3
    assert selection[0] == selection.selected[0] == next(iter(selection))
    assert selection[-2:].selected == selection.selected[1:]
    assert selection.texts == tuple(candidate.text for candidate in selection)
    assert json.loads(selection.to_json()) == json.loads(json.dumps(selection.to_dict()))
    assert repr(selection).startswith("Selection(3 by dpp: ['He called a locksmith.', ")
    with pytest.raises(IndexError):
        selection[3]


def test_a_selection_shows_as_a_table_that_runs_nothing() -> None:
    texts = ["<script>alert(1)</script>", 'a "quoted" & <b>bold</b> text']
    html = cod3s.select(texts, 2, vectors=np.eye(2), scores=[1.0, 0.5])._repr_html_()
    assert "<script" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    assert "0.500" in html
    assert repr(cod3s.select([], 2)) == "Selection(0 by dpp: [])"


def test_a_selection_becomes_a_data_frame(static: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    selection = cod3s.select(CANDIDATES, 2, encoder=static)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Cod3sError) as caught:
        selection.to_pandas()
    assert "pip install" in caught.value.hint
    monkeypatch.undo()
    pandas = pytest.importorskip("pandas")
    frame = selection.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["text"].tolist() == list(selection.texts)


def test_signatures_keep_what_the_rule_of_the_paper_keeps(static: Encoder) -> None:
    code = random_code(16, static.dim)
    packed = pack(code.sign(static.encode(CANDIDATES)))
    kept = keep_apart(packed, 2, 4).kept.tolist()
    assert len(kept) == 4
    assert indices(cod3s.select(CANDIDATES, 4, bits=16, min_hamming=2, encoder=static)) == kept


def test_what_was_not_far_enough_is_filled_in_farthest_first() -> None:
    """Vectors on a half circle sign as a thermometer: the angle decides the bits."""
    angles = np.radians([0, 2, 4, 90, 30])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    texts = ["a", "b", "c", "d", "e"]
    found = cod3s.select(texts, 4, vectors=vectors, bits=256, min_hamming=100)
    assert indices(found)[:3] == [0, 3, 4]
    assert found.remarks == ("2 of 4 differ in more than 100 bits; the others are closer",)
    strict = cod3s.select(texts, 4, vectors=vectors, bits=256, min_hamming=100, strict=True)
    assert indices(strict) == [0, 3]
    assert strict.selected[0].duplicates == (1, 2, 4)


def test_texts_of_one_bin_fill_up_last_and_in_rank_order() -> None:
    vectors = np.ones((4, 3))
    found = cod3s.select(["one", "two", "one.", "three"], 3, vectors=vectors, scores=[1, 2, 3, 4])
    assert indices(found) == [3, 2, 1]


def test_every_candidate_is_chosen_stood_for_or_far_from_all_chosen(static: Encoder) -> None:
    found = cod3s.select(CANDIDATES, 3, encoder=static)
    standing = [index for one in found.selected for index in one.duplicates]
    assert len(standing) == len(set(standing))
    assert not set(standing) & set(indices(found))
    code = random_code(found.settings["bits"], static.dim)
    packed = pack(code.sign(static.encode(CANDIDATES)))
    for index in range(len(CANDIDATES)):
        nearest = min(int(hamming(packed[index], pack(from_text(one.signature)))) for one in found.selected)
        near = nearest <= found.settings["min_hamming"]
        assert near == (index in standing or index in indices(found))


def test_without_scores_the_order_given_is_the_ranking(static: Encoder) -> None:
    found = cod3s.select(CANDIDATES, 3, encoder=static)
    assert found.selected[0].index == 0
    assert all(one.score is None for one in found.selected)


ODD = [
    ([], [], "there is none"),
    (["", "  ", "\t\u2028"], [], "nothing visible"),
    (["It rained."], [0], "fewer than k"),
    (["It rained."] * 5, [0], "all identical"),
    (["It rained.", "it rained", " It  rained. "], [0], "identical but for their form"),
    (["", "It rained.", " "], [1], "blank ones among others"),
    (["日本語です", "🙂"], [0, 1], "other scripts"),
]


@every_method
@pytest.mark.parametrize(("candidates", "wanted", "reason"), ODD)
def test_odd_candidates_have_a_defined_result(
    candidates: list[str], wanted: list[int], reason: str, method: str, static: Encoder
) -> None:
    found = cod3s.select(candidates, 3, method=method, encoder=static)
    assert indices(found) == wanted, reason
    assert found.remarks, "fewer than k is told"
    visible = {index for one in found.selected for index in (one.index, *one.duplicates)}
    assert visible | set(found.blank) == set(range(len(candidates))), "nothing is lost"


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: cod3s.select(["a", 5], 1), "candidate 1 is int"),
    (lambda: cod3s.select(["a", None], 1), "candidate 1 is NoneType"),
    (lambda: cod3s.select("a text", 1), "one text was given"),
    (lambda: cod3s.select(["a", "b"], 1, scores=[1.0, float("nan")]), "score of candidate 1 is nan"),
    (lambda: cod3s.select(["a", "b"], 1, scores=[float("inf"), 1]), "score of candidate 0 is inf"),
    (lambda: cod3s.select(["a", "b"], 1, scores=[1.0]), "1 scores were given for 2"),
    (lambda: cod3s.select(["a", "b"], 1, scores=[1.0, "high"]), "scores are not numbers"),
    (lambda: cod3s.select(["a"], 0), "k is 0"),
    (lambda: cod3s.select(["a"], 1, method="mnr"), "no method is called 'mnr'"),
    (lambda: cod3s.select(["a"], 1, score_weight=1.0), "score weight is 1.0"),
    (lambda: cod3s.select(["a"], 1, bits=0), "0 bits"),
    (lambda: cod3s.select(["a", "b"], 1, vectors=np.ones((1, 3))), "vectors of shape"),
    (lambda: cod3s.select(["a", "b"], 1, vectors=np.full((2, 3), np.nan)), "NaN"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_input_that_makes_no_sense_gets_a_clear_error(call: Callable[[], object], message: str) -> None:
    with pytest.raises(Cod3sError, match=message.replace("(", r"\(")):
        call()


def test_a_generator_of_candidates_and_scores_will_do(static: Encoder) -> None:
    found = cod3s.select((text for text in CANDIDATES), 2, scores=(n for n in range(8)), encoder=static)
    assert found == cod3s.select(CANDIDATES, 2, scores=list(range(8)), encoder=static)


def test_vectors_of_ones_own_need_no_encoder() -> None:
    found = cod3s.select(["a", "b", "c"], 2, vectors=np.array([[1, 0], [1, 0.01], [-1, 0]]), encoder="no such")
    assert indices(found) == [0, 2]
    assert found.settings["encoder"] == "vectors"
    with pytest.raises(VectorError):
        cod3s.select(["a"], 1, vectors=np.zeros((1, 0)))


@settings(max_examples=40, deadline=None)
@given(
    number=st.integers(1, 40),
    k=st.integers(1, 45),
    seed=st.integers(0, 99),
    method=st.sampled_from(list(METHODS)),
    scored=st.booleans(),
)
def test_k_different_candidates_come_back_and_the_same_ones_each_time(
    number: int, k: int, seed: int, method: str, scored: bool
) -> None:
    texts = [f"text {n}" for n in range(number)]
    scores = np.random.default_rng(seed).integers(0, 5, number).tolist() if scored else None
    vectors = unit_rows(number, seed=seed)
    first, second = (cod3s.select(texts, k, scores=scores, vectors=vectors, method=method) for _ in range(2))
    assert first == second
    assert len(set(indices(first))) == len(first.selected) == min(k, number)
    standing = [index for one in first.selected for index in one.duplicates]
    assert len(standing) == len(set(standing))
    assert not set(standing) & set(indices(first))


@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 99))
def test_mmr_takes_the_best_gain_at_each_step(number: int, k: int, seed: int) -> None:
    vectors = unit_rows(number, seed=seed).astype(np.float64)
    quality = np.random.default_rng(seed).random(number)
    chosen = choose_mmr(vectors, quality, k, score_weight=0.4).tolist()
    for step, row in enumerate(chosen):

        def gain(other: int, before: list[int] = chosen[:step]) -> float:
            nearest = max((vectors[other] @ vectors[one] for one in before), default=-1.0)
            return float(0.4 * quality[other] - 0.6 * nearest)

        assert gain(row) == pytest.approx(
            max(gain(other) for other in range(number) if other not in chosen[:step])
        )


@given(st.integers(1, 14), st.integers(1, 6), st.integers(0, 99))
def test_greedy_dpp_adds_the_row_with_the_largest_determinant_at_each_step(number: int, k: int, seed: int) -> None:
    """The incremental Cholesky update against determinants computed in full."""
    vectors = unit_rows(number, seed=seed).astype(np.float64)
    quality = np.random.default_rng(seed).random(number)
    weight = np.exp(0.5 / (2 * 0.5) * quality)
    kernel = weight[:, None] * (1 + vectors @ vectors.T) / 2 * weight
    chosen = choose_greedily(vectors, weight, k).tolist()
    for step, row in enumerate(chosen):

        def volume(other: int, before: list[int] = chosen[:step]) -> float:
            rows = [*before, other]
            return float(np.linalg.det(kernel[np.ix_(rows, rows)]))

        most = max(volume(other) for other in range(number) if other not in chosen[:step])
        assert volume(row) == pytest.approx(most, rel=1e-6, abs=1e-9)


@given(st.integers(3, 20), st.integers(2, 6), st.integers(0, 99))
def test_exchanging_rows_never_loses_volume(number: int, k: int, seed: int) -> None:
    vectors = unit_rows(number, seed=seed).astype(np.float64)
    quality = np.sort(np.random.default_rng(seed).random(number))[::-1]
    weight = np.exp(0.1 / (2 * 0.9) * quality)
    kernel = weight[:, None] * (1 + vectors @ vectors.T) / 2 * weight

    def volume(rows: np.ndarray) -> float:
        return float(np.linalg.det(kernel[np.ix_(rows, rows)]))

    greedy = choose_greedily(vectors, weight, k)
    chosen = choose_dpp(vectors, quality, k, score_weight=0.1)
    assert volume(chosen) >= volume(greedy) - 1e-9
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert len(chosen) == min(k, number)


def test_dpp_goes_on_when_no_row_adds_volume() -> None:
    vectors = np.repeat(unit_rows(2), 3, axis=0)
    chosen = choose_dpp(vectors, np.zeros(6), 5, score_weight=0.5)
    assert len(set(chosen.tolist())) == 5


def test_kmedoids_finds_the_best_partition_of_clear_clusters() -> None:
    centres = np.eye(4, dtype=np.float32)
    vectors = np.concatenate([centres + 0.05 * unit_rows(4, 4, seed) for seed in range(6)])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cost = {
        rows: float((1 - (vectors @ vectors[list(rows)].T).max(axis=1)).sum())
        for rows in combinations(range(len(vectors)), 4)
    }
    found = tuple(choose_kmedoids(vectors, np.zeros(len(vectors)), 4, seed=1).tolist())
    assert cost[found] == pytest.approx(min(cost.values()), abs=1e-6)


def test_kmedoids_with_scores_takes_the_best_of_each_cluster() -> None:
    vectors = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)[[0, 4, 8, 1, 5, 9, 2, 6, 10]]
    quality = np.linspace(1, 0, 9)  # rows stand in rank order
    assert choose_kmedoids(vectors, quality, 3, seed=0).tolist() == [0, 1, 2]


@pytest.mark.parametrize(("bits", "wanted"), [(1, 0), (16, 4), (64, 16), (128, 32), (256, 64)])
def test_two_say_the_same_within_a_quarter_of_the_bits(bits: int, wanted: int) -> None:
    assert default_min_hamming(bits) == wanted


def test_memory_does_not_hold_the_vectors_of_all_candidates() -> None:
    """40,000 candidates of 512 dimensions are 78 MiB of vectors; signatures of 32 bits are a sixth of one."""
    block = unit_rows(8192, 512)

    class Blocks:
        id, dim = "made up", 512

        def encode(self, sentences: Sequence[str]) -> np.ndarray:
            return block[: len(sentences)]

    texts = [f"Text {n}." for n in range(40_000)]
    cod3s.select(texts[:10_000], 10, encoder=Blocks(), bits=32, method="signatures")  # what every call needs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = cod3s.select(texts, 10, encoder=Blocks(), bits=32, method="signatures")
    assert len(found.selected) == 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30 * 1024
