"""The Hamming rule against its own definition."""

import numpy as np
import pytest
from hypothesis import given
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


@pytest.mark.parametrize(("wanted", "signatures", "min_hamming", "k", "reason"), CASES)
def test_the_rule_keeps(
    wanted: list[int], signatures: tuple[str, ...], min_hamming: int, k: int | None, reason: str
) -> None:
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
