"""Threshold mode: near duplicates, leaks, a changed threshold, and the index that finds neighbors."""

import resource

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cod3s
from cod3s.encode import Encoder
from cod3s.errors import UsageError
from cod3s.selection import Deduplicated
from cod3s.selection.candidates import open_source
from cod3s.selection.duplicates import find_distinct

TEXTS = [
    "He called a locksmith.",
    "She slept in the car.",
    "he called a locksmith",
    "The landlord let him in.",
    "The landlord let him in again.",
    "",
    "彼は寝た",
    "彼は起きた",
    "彼は寝た",
]


def clustered(rows: int, dim: int = 32, seed: int = 0, spread: float = 0.3) -> np.ndarray:
    """Unit vectors around centers: many near neighbors, and cosines on both sides of any threshold."""
    draw = np.random.default_rng(seed)
    centers = draw.standard_normal((max(1, rows // 5), dim))
    vectors = centers[draw.integers(0, len(centers), rows)] + spread * draw.standard_normal((rows, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def deduplicate(vectors: np.ndarray, threshold: float, **options: object) -> Deduplicated:
    result = cod3s.select(
        [f"text {n}" for n in range(len(vectors))], vectors=vectors, threshold=threshold, **options
    )  # type: ignore[call-overload]
    assert isinstance(result, Deduplicated)
    return result


def kept_by_brute_force(vectors: np.ndarray, threshold: float) -> list[int]:
    kept: list[int] = []
    for row in range(len(vectors)):
        if not kept or (vectors[kept] @ vectors[row]).max() < threshold - 1e-6:
            kept.append(row)
    return kept


def check_sound(result: Deduplicated, vectors: np.ndarray, threshold: float) -> None:
    """No two kept ones reach the threshold; every dropped one has its most similar kept one, with the cosine."""
    kept = result.indices
    cosines = vectors[kept] @ vectors[kept].T - 2 * np.eye(len(kept))
    assert cosines.max() < threshold
    listed = [index for chosen in result for index in chosen.duplicates]
    assert sorted([*listed, *kept]) == list(range(len(vectors)))
    for chosen in result:
        for index, similarity in zip(chosen.duplicates, chosen.similarities, strict=True):
            cosine = vectors[kept] @ vectors[index]
            assert kept[int(cosine.argmax())] == chosen.index
            assert similarity == pytest.approx(float(cosine.max()), abs=1e-3)
            assert similarity >= threshold - 1e-3


@settings(max_examples=25)
@given(rows=st.integers(1, 60), seed=st.integers(0, 99), threshold=st.sampled_from([0.5, 0.8, 0.9, 0.97]))
def test_what_is_kept_is_what_brute_force_keeps_and_a_raised_threshold_stays_sound(
    rows: int, seed: int, threshold: float
) -> None:
    vectors = clustered(rows, seed=seed)
    result = deduplicate(vectors, threshold)
    assert result.indices == kept_by_brute_force(vectors, threshold)
    check_sound(result, vectors, threshold)
    check_sound(result.rethreshold(0.98), vectors, 0.98)


def test_the_index_finds_the_duplicates_of_many_rows() -> None:
    """With several cells and signatures; every row that brute force drops counts."""
    vectors = clustered(6_000, dim=64, spread=0.2)
    result = deduplicate(vectors, 0.9)
    dropped = set(range(6_000)) - set(kept_by_brute_force(vectors, 0.9))
    found = {index for chosen in result for index in chosen.duplicates}
    assert len(dropped) > 2_000
    assert len(found & dropped) / len(dropped) >= 0.99


def test_texts_in_rank_order_with_blank_and_unknown_ones(static: Encoder) -> None:
    result = cod3s.select(TEXTS, threshold=0.9, encoder=static)
    assert result.indices == [0, 1, 3, 6, 7], "texts without a vector are duplicates only of the same text"
    assert result.blank == (5,)
    assert (result.k, result.method, result.settings["threshold"]) == (None, "threshold", 0.9)
    assert [(chosen.index, chosen.duplicates) for chosen in result if chosen.duplicates] == [
        (0, (2,)),
        (3, (4,)),
        (6, (8,)),
    ]
    record = result.to_dict()
    assert record["k"] is None
    assert record["selected"][0]["similarities"] == (1.0,)
    assert "distinct" not in record
    scored = cod3s.select(TEXTS, threshold=0.9, scores=range(9), encoder=static)
    assert set(scored.indices) == {1, 2, 4, 7, 8}


def test_leaks_are_left_out_and_name_the_other_text(static: Encoder) -> None:
    result = cod3s.select(TEXTS, threshold=0.9, against=["", "it rained", "she slept in the car"], encoder=static)
    assert isinstance(result, Deduplicated)
    assert [(leak.index, leak.other, leak.similarity) for leak in result.leaks] == [(1, 2, 1.0)]
    assert 1 not in result.indices
    assert result.remarks[0] == "1 left out because a text of the others says the same"
    assert result.rethreshold(1.0).leaks == result.leaks


def test_nothing_to_do_is_said_in_one_line(static: Encoder) -> None:
    assert cod3s.select(["It rained.", "She won."], threshold=0.9).remarks == (
        "all 2 differ: no cosine reaches 0.9",
    )
    assert cod3s.select(["It rained.", "it rained"], threshold=0.9).remarks == (
        "all 2 candidates say the same as the best of them",
    )
    assert cod3s.select([], threshold=0.9).remarks == ("there was nothing to select",)
    assert cod3s.select([""], threshold=0.9, against=["a"], encoder=static).blank == (0,)


def test_a_threshold_can_only_be_raised() -> None:
    result = deduplicate(clustered(20), 0.8)
    for threshold in (0.7, 1.1, float("nan")):
        with pytest.raises(UsageError, match="can be raised"):
            result.rethreshold(threshold)


def test_memory_does_not_hold_the_vectors_of_all_candidates() -> None:
    """30,000 candidates of 1,024 dimensions are 117 MiB of vectors."""

    class Blocks:
        id, dim = "made up", 1024
        draw = np.random.default_rng(0)

        def encode(self, sentences: list[str]) -> np.ndarray:
            rows = np.stack([np.random.default_rng(int(text[5:-1])).standard_normal(1024) for text in sentences])
            return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def run(count: int) -> int:
        source = open_source([f"Text {n}." for n in range(count)], Blocks(), None, 128, 1)
        return len(find_distinct(source, None, 0.9, seed=1).kept)

    run(6_000)  # what every call needs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert run(30_000) == 30_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 * 1024
