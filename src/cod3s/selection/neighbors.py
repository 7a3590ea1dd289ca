"""Find the most similar stored vector: signatures say which are worth comparing, in cells around pivots.

Each stored vector belongs to the cell of its nearest pivot. A query looks into the cells of its nearest pivots,
takes the signatures within a Hamming radius that a vector at the threshold exceeds once in thousands, and compares
only their vectors. Memory per stored vector is its signature; vectors lie in a temporary file, or at the user's.
"""

import math
import tempfile
from collections.abc import Callable
from itertools import pairwise
from types import TracebackType

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors
from cod3s.selection.candidates import Rows
from cod3s.signatures import Code, pack, random_code

BITS = 256
CELL = 1_000  # stored vectors per cell, about
MOST_CELLS = 1_024
PROBES = 16  # cells that a query looks into
LEAST_COSINE = 0.7  # below this threshold, neighbors lie in any cell, so that all are looked into
_DEVIATIONS = 4.0  # of the Hamming distance at the threshold
_PAIRS = 1 << 16  # compared together

Words = npt.NDArray[np.uint64]


class VectorFile:
    """Vectors in a temporary file, by number. It is mapped anew for each use, so that its pages do not add up."""

    def __init__(self, dim: int) -> None:
        self._dim, self._count = dim, 0
        self._file = tempfile.TemporaryFile(prefix="cod3s-")  # noqa: SIM115 - closed by close()

    def append(self, vectors: Vectors) -> None:
        self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(vectors, np.float32).tobytes())
        self._count += len(vectors)

    def __getitem__(self, numbers: Rows) -> Vectors:
        self._file.flush()
        mapped = np.memmap(self._file, np.float32, "r", shape=(self._count, self._dim))
        rows: Vectors = np.array(mapped[numbers])
        return rows

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "VectorFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Cell:
    """Numbers and signatures of the stored vectors near a pivot, in arrays that double when they are full."""

    def __init__(self) -> None:
        self.count = 0
        self._numbers = np.empty(64, np.int32)
        self._words = np.empty((64, BITS // 64), np.uint64)

    def add(self, numbers: Rows, words: Words) -> None:
        needed = self.count + len(numbers)
        if needed > len(self._numbers):
            size = max(needed, 2 * len(self._numbers))
            self._numbers = np.resize(self._numbers, size)
            self._words = np.resize(self._words, (size, BITS // 64))
        self._numbers[self.count : needed] = numbers
        self._words[self.count : needed] = words
        self.count = needed

    def within(self, words: Words, radius: int) -> tuple[Rows, Rows]:
        """Pairs of (query, stored number) whose signatures differ in at most `radius` bits."""
        queries: list[Rows] = []
        numbers: list[Rows] = []
        step = max(1, (1 << 20) // max(1, self.count))
        for start in range(0, len(words), step):
            block = words[start : start + step]
            distance = np.zeros((len(block), self.count), np.uint16)
            for word in range(BITS // 64):
                distance += np.bitwise_count(block[:, word, None] ^ self._words[None, : self.count, word])
            query, stored = np.nonzero(distance <= radius)
            queries.append(query + start)
            numbers.append(self._numbers[stored].astype(np.intp))
        return np.concatenate(queries), np.concatenate(numbers)


class SignatureIndex:
    """The index: `add` stores vectors by number, `nearest` finds the most similar stored one above a threshold."""

    def __init__(self, pivots: Vectors, threshold: float, stored: Callable[[Rows], Vectors], seed: int) -> None:
        self._pivots, self._threshold, self._stored = pivots, threshold, stored
        self._code: Code = random_code(BITS, pivots.shape[1], seed)
        self._cells = [_Cell() for _ in range(len(pivots))]
        self._probes = len(pivots) if threshold < LEAST_COSINE else min(PROBES, len(pivots))
        angle = math.acos(min(1.0, max(-1.0, threshold))) / math.pi
        self._radius = int(BITS * angle + _DEVIATIONS * math.sqrt(BITS * max(angle * (1 - angle), 1e-3))) + 1

    def add(self, numbers: Rows, vectors: Vectors) -> None:
        """Store vectors under these numbers."""
        words = self._words(vectors)
        cells = (vectors @ self._pivots.T).argmax(axis=1)
        for cell in np.unique(cells):
            rows = cells == cell
            self._cells[cell].add(numbers[rows], words[rows])

    def nearest(self, vectors: Vectors) -> tuple[Rows, npt.NDArray[np.float32]]:
        """The number of the most similar stored vector for each, and the cosine; -1 and 0 below the threshold."""
        number = np.full(len(vectors), -1)
        similarity = np.zeros(len(vectors), np.float32)
        words = self._words(vectors)
        near = vectors @ self._pivots.T
        probes = np.argpartition(-near, self._probes - 1, axis=1)[:, : self._probes]
        order = np.argsort(probes, axis=None, kind="stable")
        starts = np.searchsorted(probes.ravel()[order], np.arange(len(self._cells) + 1))
        for cell, (start, end) in enumerate(pairwise(starts)):
            if start == end or not self._cells[cell].count:
                continue
            queries = order[start:end] // self._probes
            pairs, numbers = self._cells[cell].within(words[queries], self._radius)
            self._compare(vectors, queries[pairs], numbers, number, similarity)
        return number, similarity

    def _compare(
        self, vectors: Vectors, queries: Rows, numbers: Rows, number: Rows, similarity: npt.NDArray[np.float32]
    ) -> None:
        """Enter the pairs whose cosine reaches the threshold and is the highest of the query so far."""
        for start in range(0, len(queries), _PAIRS):
            query, other = queries[start : start + _PAIRS], numbers[start : start + _PAIRS]
            cosines = np.einsum("nd,nd->n", vectors[query], self._stored(other))
            near = cosines >= np.maximum(self._threshold - ROUNDING, similarity[query])
            order = np.flatnonzero(near)[np.lexsort((-other[near], cosines[near]))]
            number[query[order]] = other[order]  # of equal queries, the last one stays: the most similar
            similarity[query[order]] = np.minimum(cosines[order], 1)

    def _words(self, vectors: Vectors) -> Words:
        return np.ascontiguousarray(pack(self._code.sign(vectors))).view(np.uint64)


ROUNDING = 1e-6  # cosines of equal vectors may come out below 1
