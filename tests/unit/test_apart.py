"""The Hamming rule against its own definition."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cod3s.errors import SignatureError
from cod3s.signatures import apart as apart_module
from cod3s.signatures import from_text, hamming, keep_apart, pack


def packed(*signatures: str) -> np.ndarray:
    return pack(np.stack([from_text(signature) for signature in signatures]))


def by_definition(rows: np.ndarray, min_hamming: int, k: int | None) -> list[int]:
    """Down the ranking, one row at a time, as the paper tells it."""
    kept: list[int] = []
    for row in range(len(rows)):
        if k is not None and len(kept) >= k:
            break
        if all(hamming(rows[row], rows[other]) > min_hamming for other in kept):
            kept.append(row)
    return kept


CASES = [
    ([0, 2], ("0000", "0001", "0011", "0010"), 1, None, "the second lies within one bit of the first"),
    ([0, 1], ("0000", "0001", "1111"), 0, 2, "stops when k are kept"),
    ([0], ("0000", "0000", "0000"), 0, 5, "all equal: one is kept, though five are asked for"),
    ([0, 1, 2], ("0000", "0000", "0000"), -1, None, "below 0 nothing is dropped"),
    ([0], ("0101",), 4, 1, "one row"),
    ([0], ("0000", "1111"), 4, None, "a threshold as large as the signature keeps the best alone"),
    ([], ("0000", "1111"), 0, 0, "none is asked for"),
]


def test_the_rule_keeps_what_is_far_from_all_that_is_kept() -> None:
    for wanted, signatures, min_hamming, k, reason in CASES:
        assert keep_apart(packed(*signatures), min_hamming, k).kept.tolist() == wanted, reason


def test_no_rows_give_no_rows() -> None:
    found = keep_apart(np.zeros((0, 2), np.uint8), 2, 3)
    assert len(found.kept) == len(found.others) == len(found.order()) == 0


def test_the_demoted_rows_follow_in_rank_order_and_fill_up_a_short_list() -> None:
    found = keep_apart(packed("0000", "0001", "1111", "0011"), 2, 3)
    assert found.kept.tolist() == [0, 2]
    assert found.order().tolist() == [0, 2, 1, 3]


def test_one_packed_signature_without_an_axis_is_refused() -> None:
    with pytest.raises(SignatureError, match=r"\(n, bytes\)"):
        keep_apart(np.zeros(2, np.uint8), 2)


@given(
    st.lists(st.integers(0, 2**10 - 1), max_size=60),
    st.integers(-1, 10),
    st.one_of(st.none(), st.integers(0, 20)),
    st.integers(1, 8),
)
def test_blocks_do_not_change_what_the_definition_keeps(
    numbers: list[int], min_hamming: int, k: int | None, block: int
) -> None:
    rows = np.array([[number >> 8, number & 255] for number in numbers], np.uint8).reshape(-1, 2)
    before = apart_module._BLOCK
    apart_module._BLOCK = block
    try:
        found = keep_apart(rows, min_hamming, k)
    finally:
        apart_module._BLOCK = before
    assert found.kept.tolist() == by_definition(rows, min_hamming, k)
    assert sorted(found.order().tolist()) == list(range(len(rows)))
    assert (np.diff(found.others) > 0).all()


# Signatures as strings, and the modes

SIGNATURES = st.lists(st.text("01", min_size=8, max_size=8), min_size=1, max_size=40, unique=True)


def differ(a: str, b: str) -> int:
    return sum(x != y for x, y in zip(a, b, strict=True))


def greedy(signatures: Sequence[str], k: int, t: int) -> list[int]:
    """The rule as the paper says it."""
    kept: list[int] = []
    for row, signature in enumerate(signatures):
        if all(differ(signature, signatures[other]) > t for other in kept):
            kept.append(row)
    return kept[:k]


@settings(max_examples=200)
@given(SIGNATURES, st.integers(1, 12), st.integers(0, 8))
def test_the_hamming_rule_is_greedy_in_rank_order(signatures: list[str], k: int, t: int) -> None:
    strict = keep_apart(signatures, t, k, "strict")
    assert strict.kept.tolist() == greedy(signatures, k, t)
    assert strict.min_hamming == t
    assert all(differ(signatures[a], signatures[b]) > t for a, b in combinations(strict.kept, 2))


@settings(max_examples=200)
@given(SIGNATURES, st.integers(1, 12), st.integers(0, 8))
def test_relaxing_stops_at_the_largest_t_that_gives_k(signatures: list[str], k: int, t: int) -> None:
    found = keep_apart(signatures, t, k, "relax")
    enough = [lower for lower in range(t, -1, -1) if len(greedy(signatures, k, lower)) == k]
    assert found.min_hamming == (enough[0] if enough else 0)
    assert found.kept.tolist() == greedy(signatures, k, found.min_hamming)
    assert len(found.kept) == min(k, len(signatures))


@settings(max_examples=200)
@given(SIGNATURES, st.integers(1, 12), st.integers(0, 8))
def test_refilling_demotes_and_drops_nothing_that_is_needed(signatures: list[str], k: int, t: int) -> None:
    kept = greedy(signatures, k, t)
    left = [row for row in range(len(signatures)) if row not in kept]
    assert keep_apart(signatures, t, k, "refill").kept.tolist() == (kept + left)[:k]


APART = [
    ("one is always kept", ["0000"], 3, 9, "relax", (0,), 0),
    ("k = 1 needs no distance", ["0000", "1111"], 1, 4, "strict", (0,), 4),
    ("the better of two near ones stays", ["0000", "0001", "1111"], 2, 2, "strict", (0, 2), 2),
    ("distance t itself is too near", ["0000", "0011"], 2, 2, "strict", (0,), 2),
    ("relaxed by one", ["0000", "0011"], 2, 2, "relax", (0, 1), 1),
    ("none given", [], 3, 2, "relax", (), 2),
]


def test_each_mode_ends_with_its_rows_and_threshold() -> None:
    for why, signatures, k, t, mode, rows, reached in APART:
        found = keep_apart(signatures, t, k, mode)
        assert (tuple(found.kept), found.min_hamming) == (rows, reached), why
