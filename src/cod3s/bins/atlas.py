"""An atlas of bins: the largest bins of a bins file on a map, and which of them lie near a signature.

A signature stands for a direction: the sum of its hyperplanes, each with the sign of its bit. The map shows these
directions in the two axes in which they spread most.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.bins.store import BinsFile
from cod3s.signatures import Code, from_text, hamming, pack

MOST = 65_536  # bins that an atlas holds: all of 16 bits


@dataclass(frozen=True)
class MappedBin:
    """A bin and its place on the map, both from 0 to 1."""

    signature: str
    x: float
    y: float
    count: int
    medoid: str


@dataclass(frozen=True)
class NearBin:
    """A bin and how many bits it is from the signature that was asked about."""

    signature: str
    count: int
    medoid: str
    hamming: int


class Atlas:
    """The bins by size, largest first; in memory and never changed, so any thread may read it."""

    def __init__(self, bins: BinsFile, code: Code, most: int = MOST) -> None:
        rows = list(bins.largest(most))
        self._bits = code.bits
        signatures = np.array([from_text(row.signature, code.bits) for row in rows], bool).reshape(-1, code.bits)
        self._packed = pack(signatures)
        self.bins: Sequence[MappedBin] = [
            MappedBin(row.signature, x, y, row.count, row.medoid)
            for row, (x, y) in zip(rows, flatten(code.sketch(signatures)).tolist(), strict=True)
        ]

    def near(self, signature: str, number: int) -> Iterator[NearBin]:
        """The `number` bins that differ in the fewest bits, but not in none; of equally near ones the largest."""
        distances = hamming(self._packed, pack(from_text(signature, self._bits)))
        order = np.argsort(distances, kind="stable")
        for place in order[distances[order] > 0][:number].tolist():
            one = self.bins[place]
            yield NearBin(one.signature, one.count, one.medoid, int(distances[place]))


def flatten(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The vectors (n, dim) in their two principal axes, (n, 2), each scaled to 0 to 1; 0.5 where nothing differs.

    An axis points to where its largest coefficient is positive: the same vectors give the same map.
    """
    if not len(vectors):
        return np.zeros((0, 2))
    centred = vectors - vectors.mean(axis=0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :2]  # (dim, 2), widest first
    axes *= np.where(np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None], axis=0) < 0, -1.0, 1.0)
    flat = centred @ axes
    spread = np.ptp(flat, axis=0)
    middle = np.full(flat.shape, 0.5)
    scaled = np.divide(flat - flat.min(axis=0), spread, out=middle, where=spread > 1e-9)
    rounded: npt.NDArray[np.float64] = scaled.clip(0.0, 1.0).round(4)
    return rounded
