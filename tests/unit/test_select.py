"""Selection of k: the methods behind one door, history, tables, remarks, and input that nobody should give."""

import json
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cod3s
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError
from cod3s.selection import METHODS, default_min_hamming
from cod3s.selection.choose import MOST_COMPARED
from cod3s.selection.greedy import choose_dpp, choose_greedily, choose_mmr
from cod3s.selection.kmedoids import choose_kmedoids
from cod3s.selection.representatives import choose_representatives
from cod3s.signatures import keep_apart, pack, random_code
from paraphrase_groups import LATER_SETS, SETS

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
EVENTS = [0, 0, 0, 1, 1, 2, 2, 3]


def unit_rows(number: int, dim: int = 8, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((number, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_each_meaning_and_keeps_the_better_of_two_forms(method: str, static: Encoder) -> None:
    selection = cod3s.select(CANDIDATES, 4, method=method, encoder=static)
    assert sorted(EVENTS[index] for index in selection.indices) == [0, 1, 2, 3]
    scores = [0.1, 0.9, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    selection = cod3s.select(CANDIDATES, 7, scores=scores, method=method, encoder=static)
    chosen = {candidate.index: candidate for candidate in selection}
    assert 0 not in chosen
    assert (chosen[1].text, chosen[1].score) == ("he called a locksmith", 0.9)
    assert 0 in chosen[1].duplicates


def test_the_default_covers_the_meanings_of_paraphrase_sets(static: Encoder) -> None:
    shares = []
    for paraphrases in [*SETS, *LATER_SETS]:
        for scores in (None, paraphrases.scores, paraphrases.scores[::-1]):
            selection = cod3s.select(
                paraphrases.candidates, len(paraphrases.groups), scores=scores, encoder=static
            )
            shares.append(len(paraphrases.covered(selection.indices)) / len(paraphrases.groups))
    assert np.mean(shares) > 0.92


def test_the_result_names_the_method_that_ran_and_duplicates_have_cosines(static: Encoder) -> None:
    for options, method in (
        ({}, "representatives"),
        ({"strict": True}, "signatures"),
        ({"min_hamming": 10}, "signatures"),
        ({"method": "mmr"}, "mmr"),
    ):
        assert cod3s.select(CANDIDATES, 3, encoder=static, **options).method == method
    (first, *_) = cod3s.select(CANDIDATES, 1, scores=[1] + 7 * [0], method="mmr", encoder=static)
    assert first.duplicates == (1, 2)
    assert first.similarities[0] == 1.0
    assert 0.7 < first.similarities[1] < 1


def test_a_selection_is_a_list_of_records(static: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    selection = cod3s.select(CANDIDATES, 3, method="dpp", encoder=static)
    assert selection[0] == selection.selected[0] == next(iter(selection))
    assert selection[-2:].selected == selection.selected[1:]
    assert json.loads(selection.to_json()) == json.loads(json.dumps(selection.to_dict()))
    assert repr(selection).startswith("Selection(3 by dpp: ['")
    html = cod3s.select(["<script>", "b"], 2, vectors=np.eye(2), scores=[1.0, 0.5])._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(Cod3sError):
        selection.to_pandas()


def test_signatures_keep_what_the_rule_of_the_paper_keeps(static: Encoder) -> None:
    packed = pack(random_code(16, static.dim).sign(static.encode(CANDIDATES)))
    kept = keep_apart(packed, 2, 4).kept.tolist()
    assert cod3s.select(CANDIDATES, 4, bits=16, min_hamming=2, encoder=static).indices == kept


def test_what_was_not_far_enough_is_filled_in_farthest_first() -> None:
    """Vectors on a half circle sign as a thermometer: the angle decides the bits."""
    angles = np.radians([0, 2, 4, 90, 30])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    found = cod3s.select(list("abcde"), 4, vectors=vectors, bits=256, min_hamming=100)
    assert found.indices[:3] == [0, 3, 4]
    assert found.remarks[0].startswith("2 of 4 differ")
    strict = cod3s.select(list("abcde"), 4, vectors=vectors, bits=256, min_hamming=100, strict=True)
    assert strict.indices == [0, 3]
    assert strict.selected[0].duplicates == (1, 2, 4)


def test_odd_candidates_have_a_defined_result(static: Encoder) -> None:
    cases: list[tuple[list[str], list[int], str]] = [
        ([], [], "there is none"),
        (["", "  ", "\t\u2028"], [], "nothing visible"),
        (["It rained."], [0], "fewer than k"),
        (["It rained."] * 5, [0], "all identical"),
        (["It rained.", "it rained", " It  rained. "], [0], "identical but for their form"),
        (["", "It rained.", " "], [1], "blank ones among others"),
        (["日本語です", "🙂", "🙂"], [0, 1], "other scripts, which the encoder does not know"),
        (["a " * 500_000, "b"], [0, 1], "a megabyte"),
    ]
    for candidates, wanted, reason in cases:
        for method in METHODS:
            selection = cod3s.select(candidates, 3, method=method, encoder=static)
            assert selection.indices == wanted, (reason, method)
            assert selection.remarks, (reason, method)
            shown = {index for chosen in selection for index in (chosen.index, *chosen.duplicates)}
            assert shown | set(selection.blank) == set(range(len(candidates))), (reason, method)


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: cod3s.select(["a", 5], 1), "candidate 1 is int"),
    (lambda: cod3s.select("a text", 1), "a text was given"),
    (lambda: cod3s.select(["a", "b"], 1, scores=[1.0, float("nan")]), "score of candidate 1 is nan"),
    (lambda: cod3s.select(["a", "b"], 1, scores=[1.0]), "1 scores were given for 2"),
    (lambda: cod3s.select(["a", "b"], 1, scores=[1.0, "high"]), "scores are not numbers"),
    (lambda: cod3s.select(["a", "b"], 1, scores="logprob"), "not a table"),
    (lambda: cod3s.select(["a"], 0), "k is 0"),
    (lambda: cod3s.select(["a"], 1, method="mnr"), "no method is called 'mnr'"),
    (lambda: cod3s.select(["a"], 1, score_weight=1.0), "score_weight is 1.0"),
    (lambda: cod3s.select(["a"], 1, bits=0), "0 bits"),
    (lambda: cod3s.select(["a", "b"], 1, by=[1]), "1 groups were given for 2"),
    (lambda: cod3s.select(["a", "b"], 1, vectors=np.ones((1, 3))), "vectors of shape"),
    (lambda: cod3s.select(["a", "b"], 1, vectors=[[1.0], [1.0, 2.0]]), "not a table of numbers"),
    (lambda: cod3s.select(["a", "b"], 1, vectors=np.full((2, 3), np.nan)), "NaN"),
    (lambda: cod3s.select(["a", "b"], 1, vectors=np.ones((2, 3)), unlike=["c"]), "the vectors have 3"),
    (lambda: cod3s.select(["a"], 1, unlike="shown"), "put it in a list"),
    (lambda: cod3s.select(["a"], 1, unlike=Path("not there")), "no file"),
    (lambda: cod3s.select(["a"], 1, against=["b"]), "needs a threshold"),
    (lambda: cod3s.select(["a"], 1, threshold=0.9), "without k="),
    (lambda: cod3s.select(["a"], threshold=1.5), "threshold is 1.5"),
    (lambda: cod3s.select(["a"], threshold=float("nan")), "threshold is nan"),
]


def test_input_that_makes_no_sense_gets_a_clear_error() -> None:
    for call, message in REFUSED:
        with pytest.raises(Cod3sError) as caught:
            call()
        assert message in f"{caught.value.message} {caught.value.hint}"


def test_generators_and_own_vectors_will_do(static: Encoder) -> None:
    found = cod3s.select((text for text in CANDIDATES), 2, scores=(n for n in range(8)), encoder=static)
    assert found == cod3s.select(CANDIDATES, 2, scores=list(range(8)), encoder=static)
    vectors = np.array([[1, 0], [1, 0.01], [-1, 0]])
    found = cod3s.select(["a", "b", "c"], 2, vectors=vectors, encoder="no such")
    assert found.indices[1] == 2
    assert found.settings["encoder"] == "vectors"


@settings(max_examples=60)
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
    assert len(set(first.indices)) == len(first) == min(k, number)
    standing = [index for chosen in first for index in chosen.duplicates]
    assert len(standing) == len(set(standing))
    assert not set(standing) & set(first.indices)


def test_clear_clusters_have_a_representative_each_and_lone_outliers_give_way() -> None:
    centers = np.repeat(np.eye(5, dtype=np.float32)[:4], 6, axis=0)
    vectors = centers + 0.1 * unit_rows(24, 5)
    outlier = 0.8 * np.eye(5)[[0]] + 0.6 * np.eye(5)[[4]]  # nearer to the first cluster than the clusters are
    vectors = np.concatenate([outlier, vectors]).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chosen = choose_representatives(vectors, np.ones(25), np.ones(25), 4)
    assert sorted((row - 1) // 6 for row in chosen) == [0, 1, 2, 3]
    assert 0 not in chosen
    assert len(choose_representatives(vectors, np.ones(25), np.ones(25), 24)) == 24


def test_the_incremental_gains_of_representatives_are_those_of_the_definition() -> None:
    """With k equal to the pool, every choice is the greedy best by facility location computed in full."""
    from cod3s.selection.representatives import _stand_for_all

    vectors, weight, count = unit_rows(30), np.linspace(1, 2, 30), np.arange(1.0, 31.0)
    cosines = (vectors @ vectors.T).astype(np.float64)
    pool = _stand_for_all(cosines, weight, count, 8).tolist()
    cover = np.full(30, cosines.min())
    for row in pool:
        gains = weight * (count @ np.maximum(cosines - cover[:, None], 0))
        assert gains[row] == pytest.approx(gains.max())
        cover = np.maximum(cover, cosines[row])


def test_many_candidates_are_thinned_out_by_their_signatures() -> None:
    centers = unit_rows(20, 32)
    draw = np.random.default_rng(1)
    groups = draw.integers(0, 20, MOST_COMPARED * 3)
    vectors = centers[groups] + 0.05 * unit_rows(len(groups), 32, 2)
    selection = cod3s.select([f"text {n}" for n in range(len(groups))], 20, vectors=vectors)
    assert len({groups[index] for index in selection.indices}) >= 19
    assert selection.method == "representatives"


@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 99))
def test_mmr_takes_the_best_gain_at_each_step(number: int, k: int, seed: int) -> None:
    vectors = unit_rows(number, seed=seed).astype(np.float64)
    quality = np.random.default_rng(seed).random(number)
    chosen = choose_mmr(vectors, quality, k, score_weight=0.4).tolist()
    for step, row in enumerate(chosen):
        nearest = (vectors @ vectors[chosen[:step]].T).max(axis=1) if step else np.full(number, -1.0)
        gain = 0.4 * quality - 0.6 * nearest
        gain[chosen[:step]] = -np.inf
        assert gain[row] == pytest.approx(gain.max())


@given(st.integers(3, 14), st.integers(2, 6), st.integers(0, 99))
def test_dpp_adds_the_largest_determinant_and_exchanging_never_loses_volume(
    number: int, k: int, seed: int
) -> None:
    vectors = unit_rows(number, seed=seed).astype(np.float64)
    quality = np.sort(np.random.default_rng(seed).random(number))[::-1]
    weight = np.exp(0.1 / (2 * 0.9) * quality)
    kernel = weight[:, None] * (1 + vectors @ vectors.T) / 2 * weight

    def volume(rows: list[int]) -> float:
        return float(np.linalg.det(kernel[np.ix_(rows, rows)]))

    greedy = choose_greedily(vectors, weight, k).tolist()
    for step, row in enumerate(greedy):
        before = greedy[:step]
        most = max(volume([*before, other]) for other in range(number) if other not in before)
        assert volume([*before, row]) == pytest.approx(most, rel=1e-6, abs=1e-9)
    assert volume(choose_dpp(vectors, quality, k, score_weight=0.1).tolist()) >= volume(greedy) - 1e-9


def test_dpp_and_kmedoids_on_identical_and_on_clustered_rows() -> None:
    repeated = np.repeat(unit_rows(2), 3, axis=0)
    assert len(set(choose_dpp(repeated, np.zeros(6), 5, score_weight=0.5).tolist())) == 5
    centers = np.eye(4, dtype=np.float32)
    vectors = np.concatenate([centers + 0.05 * unit_rows(4, 4, seed) for seed in range(6)])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cost = {
        rows: float((1 - (vectors @ vectors[list(rows)].T).max(axis=1)).sum())
        for rows in combinations(range(len(vectors)), 4)
    }
    found = tuple(choose_kmedoids(vectors, np.zeros(len(vectors)), 4, seed=1).tolist())
    assert cost[found] == pytest.approx(min(cost.values()), abs=1e-6)
    clusters = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0)[[0, 4, 8, 1, 5, 9, 2, 6, 10]]
    assert choose_kmedoids(clusters, np.linspace(1, 0, 9), 3, seed=0).tolist() == [0, 1, 2]


def test_a_quarter_of_the_bits_says_the_same() -> None:
    assert [default_min_hamming(bits) for bits in (1, 16, 64, 128, 256)] == [0, 4, 16, 32, 64]


def test_unlike_keeps_away_from_what_was_shown_and_like_keeps_near_a_wish(static: Encoder, tmp_path: Path) -> None:
    shown = tmp_path / "shown.txt"
    shown.write_text("he phoned for a locksmith\n\nThe landlord let him in\n", encoding="utf-8")
    for unlike in (["he phoned for a locksmith", "", "The landlord let him in"], shown):
        for method in METHODS:
            selection = cod3s.select(CANDIDATES, 2, unlike=unlike, method=method, encoder=static)
            assert {EVENTS[index] for index in selection.indices} == {1, 3}, method
            assert "5 of 8 candidates say what was shown before" in selection.remarks
    few = cod3s.select(CANDIDATES, 4, unlike=shown, encoder=static)
    assert len(few) == 4, "if too few are new, the least similar fill up"
    for method in METHODS:
        wish = cod3s.select(CANDIDATES, 2, like=["sleeping in a car"], method=method, encoder=static)
        assert method == "kmedoids" or 1 in {EVENTS[index] for index in wish.indices}, method
    records = tmp_path / "shown.jsonl"
    records.write_text('{"text": "he phoned for a locksmith"}\n', encoding="utf-8")
    assert 0 not in {EVENTS[index] for index in cod3s.select(CANDIDATES, 3, unlike=records).indices}


def test_remarks_say_when_there_is_nothing_to_do_and_when_the_encoder_does_not_know_the_language() -> None:
    same = cod3s.select(["a", "b", "c"], 2, vectors=np.ones((3, 4)))
    assert same.remarks == ("all 3 candidates say about the same: no cosine is below 1.00",)
    differ = cod3s.select(["a", "b", "c"], 2, vectors=np.eye(3))
    assert differ.remarks == ("all 3 candidates differ: no cosine is above 0.00",)
    for texts, is_known in (
        (["Der Hund schläft auf dem Sofa.", "Die Katze ist nicht da."], False),
        (["彼は鍵をなくした", "彼女は寝ている"], False),
        (["Elle ne peut pas venir avec nous.", "Il est dans la rue."], False),
        (["Call it Café Olé.", "Name it Luna.", "Die hard fans wait."], True),
        (["He called a locksmith.", "An en dash – fine."], True),
    ):
        remarks = cod3s.select(texts, 1).remarks
        assert any("knows English only" in remark and "sbert:" in remark for remark in remarks) != is_known


def test_groups_are_chosen_from_rows_in_any_order(static: Encoder) -> None:
    values = ["x", "y", "x", "y", "x", "y", "x", "y"]
    selection = cod3s.select(CANDIDATES, 2, by=values, encoder=static)
    assert [candidate.group for candidate in selection] == ["x", "x", "y", "y"]
    assert all(values[candidate.index] == candidate.group for candidate in selection)
    alone = cod3s.select(CANDIDATES[::2], 2, encoder=static)
    assert [2 * index for index in alone.indices] == selection.indices[:2]
    short = cod3s.select(["a", "b", "c"], 2, by=[1, 1, 2], vectors=np.eye(3))
    assert short.remarks == ("1 of 2 groups has fewer than 2 candidates that differ",)


def test_tables_come_back_as_they_came(static: Encoder) -> None:
    columns: dict[str, Any] = {
        "topic": ["k"] * 4 + ["h"] * 4,
        "answer": CANDIDATES,
        "score": [float(n) for n in range(8)],
    }

    def check(table: Any, rows_of: Callable[[Any], list[str]]) -> None:
        selection = cod3s.select(table, 1, column="answer", by="topic", scores="score", encoder=static)
        assert type(selection.table) is type(table)
        assert rows_of(selection.table) == [CANDIDATES[index] for index in selection.indices]
        assert [candidate.group for candidate in selection] == ["k", "h"]
        joint = cod3s.select(table, 2, column=["topic", "answer"], encoder=static)
        assert joint[0].text == columns["topic"][joint.indices[0]] + "\n" + CANDIDATES[joint.indices[0]]
        assert "table" not in joint.to_dict()
        with pytest.raises(Cod3sError, match="no column 'answers'"):
            cod3s.select(table, 1, column="answers")

    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns, index=list("abcdefgh"))
    check(frame, lambda table: table["answer"].tolist())
    assert set(cod3s.select(frame, 2, column="answer", encoder=static).table.index) < set("abcdefgh")
    arrow = pytest.importorskip("pyarrow")
    check(arrow.table(columns), lambda table: table["answer"].to_pylist())
    polars = pytest.importorskip("polars")
    check(polars.DataFrame(columns), lambda table: table["answer"].to_list())
    datasets = pytest.importorskip("datasets")
    check(datasets.Dataset.from_dict(columns), lambda table: list(table["answer"]))
