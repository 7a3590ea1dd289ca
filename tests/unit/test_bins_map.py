"""The map of bins: where they lie, and which are near."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cod3s.bins import BinMap, BinsFacts, open_bins
from cod3s.bins.file import write_bins
from cod3s.bins.map import flatten
from cod3s.errors import SignatureError
from cod3s.records import Bin
from cod3s.signatures import from_text, random_code

CODE = random_code(4, 6)
COUNTS = {"0000": 5, "0001": 9, "0111": 2, "1111": 5, "1110": 1}


@pytest.fixture
def bin_map(tmp_path: Path) -> BinMap:
    facts = BinsFacts("static", "random", 4, 1234, 22, 0)
    write_bins(tmp_path / "bins.sqlite", facts, (Bin(name, n, f"of {name}", ()) for name, n in COUNTS.items()))
    with open_bins(tmp_path / "bins.sqlite") as bins:
        return BinMap(bins, CODE)


def test_bins_come_by_size_and_equal_ones_by_signature(bin_map: BinMap) -> None:
    assert [one.signature for one in bin_map.bins] == ["0001", "0000", "1111", "0111", "1110"]
    assert [one.count for one in bin_map.bins] == [9, 5, 5, 2, 1]


NEAR = [
    ("0000", [("0001", 1), ("0111", 3), ("1110", 3)], "not the bin itself; of equally near ones the larger first"),
    ("0011", [("0001", 1), ("0111", 1), ("0000", 2)], "a bin that is empty has neighbors too"),
]


@pytest.mark.parametrize(("signature", "wanted", "why"), NEAR, ids=[why for *_, why in NEAR])
def test_the_nearest_bins(signature: str, wanted: list[tuple[str, int]], why: str, bin_map: BinMap) -> None:
    assert [(one.signature, one.hamming) for one in bin_map.near(signature, 3)] == wanted


def test_more_neighbors_than_there_are(bin_map: BinMap) -> None:
    assert len(list(bin_map.near("0000", 100))) == 4


def test_a_signature_of_another_length_has_no_neighbors(bin_map: BinMap) -> None:
    with pytest.raises(SignatureError, match="4 are needed"):
        list(bin_map.near("00000", 3))


@settings(max_examples=50, deadline=None)
@given(vectors=arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(2, 5)), elements=st.floats(-9, 9)))
def test_a_map_fills_the_square_and_is_always_the_same(vectors: np.ndarray) -> None:
    flat = flatten(vectors)
    assert flat.shape == (len(vectors), 2)
    assert flat.min() >= 0
    assert flat.max() <= 1
    assert (flat == flatten(vectors.copy())).all()


@pytest.mark.parametrize(
    "vectors", [np.zeros((0, 3)), np.zeros((1, 3)), np.ones((5, 3))], ids=["none", "one", "equal"]
)
def test_what_does_not_differ_lies_in_the_middle(vectors: np.ndarray) -> None:
    assert flatten(vectors).tolist() == [[0.5, 0.5]] * len(vectors)


def test_the_first_axis_is_the_one_of_the_widest_spread() -> None:
    vectors = np.array([[0.0, 0.0, 7.0], [10.0, 1.0, 7.0], [20.0, 0.0, 7.0]])
    assert flatten(vectors)[:, 0].tolist() == [0.0, 0.5, 1.0]


def test_opposite_signatures_stand_for_opposite_directions() -> None:
    signatures = np.array([from_text("0110"), from_text("1001")])
    first, second = CODE.sketch(signatures)
    assert first == pytest.approx(-second)
