"""Map the largest bins of a bins file, and find those near a signature.

A signature stands for a direction: the sum of its hyperplanes, each with the sign of its bit. The map shows these
directions along the two axes in which they differ most.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.bins.file import BinsFile
from cod3s.signatures import Code, from_text, hamming, pack
from cod3s.unsuitable import presentable

MAX_BINS = 65_536  # all bins of 16 bits


@dataclass(frozen=True)
class MappedBin:
    """A bin and its coordinates on the map, both from 0 to 1."""

    signature: str
    x: float
    y: float
    count: int
    medoid: str


@dataclass(frozen=True)
class NearBin:
    """A bin and the number of bits in which it differs from a signature."""

    signature: str
    count: int
    medoid: str
    hamming: int


class BinMap:
    """The bins by size, largest first, in memory; any thread may read it. It shows only presentable medoids."""

    def __init__(self, bins: BinsFile, code: Code) -> None:
        rows = list(bins.largest(MAX_BINS))
        self._bits = code.bits
        signatures = np.array([from_text(row.signature, code.bits) for row in rows], bool).reshape(-1, code.bits)
        self._packed = pack(signatures)
        self.bins: Sequence[MappedBin] = [
            MappedBin(row.signature, x, y, row.count, presentable(row.medoid))
            for row, (x, y) in zip(rows, flatten(code.sketch(signatures)).tolist(), strict=True)
        ]

    def near(self, signature: str, number: int) -> Iterator[NearBin]:
        """The `number` nearest other bins, in bits; of equally near bins the largest first."""
        distances = hamming(self._packed, pack(from_text(signature, self._bits)))
        order = np.argsort(distances, kind="stable")
        for row in order[distances[order] > 0][:number].tolist():
            bin = self.bins[row]
            yield NearBin(bin.signature, bin.count, bin.medoid, int(distances[row]))


def flatten(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The vectors (n, dim) along their two principal axes, (n, 2), scaled to 0 to 1; 0.5 if nothing differs.

    The largest coefficient of an axis is positive, so that the same vectors give the same map.
    """
    if not len(vectors):
        return np.zeros((0, 2))
    centered = vectors - vectors.mean(axis=0)
    axes = np.linalg.eigh(centered.T @ centered)[1][:, ::-1][:, :2]  # (dim, 2), widest first
    axes *= np.where(np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0) < 0, -1.0, 1.0)
    flat = centered @ axes
    spread = np.ptp(flat, axis=0)
    middle = np.full(flat.shape, 0.5)
    scaled = np.divide(flat - flat.min(axis=0), spread, out=middle, where=spread > 1e-9)
    rounded: npt.NDArray[np.float64] = scaled.clip(0.0, 1.0).round(4)
    return rounded
