"""Measure the processor time and peak memory of selecting 10 of many candidates, the encoder left out.

    python benchmarks/select_scale.py [CANDIDATES...]

Each size runs in a process of its own, so that its peak memory is its own. The texts are made when they are read
and the vectors come from one block, so that neither counts. `products` is the time of the matrix products that any
signing of these vectors needs, in the same process: the ratio does not depend on the machine's mood.
"""

import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from time import process_time
from typing import overload

import numpy as np

import cod3s
from cod3s.selection import BITS
from cod3s.text import all_for_embedding, for_embedding

DIM, BLOCK = 256, 8192


class Texts(Sequence[str]):
    """Sentences that exist only while they are read."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return map(self._text, range(self._count))

    @overload
    def __getitem__(self, position: int) -> str: ...
    @overload
    def __getitem__(self, position: slice) -> list[str]: ...
    def __getitem__(self, position: int | slice) -> str | list[str]:
        if isinstance(position, slice):
            return [self._text(row) for row in range(*position.indices(self._count))]
        return self._text(position)

    def _text(self, row: int) -> str:
        return f"Candidate {row} of many."


class Blocks:
    """An encoder that costs nothing: unit vectors around 2,000 centres."""

    id, dim = "made-up", DIM

    def __init__(self) -> None:
        draw = np.random.default_rng(0)
        centres = draw.standard_normal((2000, DIM), np.float32)
        vectors = centres[draw.integers(0, 2000, BLOCK)] + 0.3 * draw.standard_normal((BLOCK, DIM), np.float32)
        self.vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        block: np.ndarray = self.vectors[: len(sentences)]
        return block


def seconds_of_products(encoder: Blocks, count: int) -> float:
    """Projecting `count` vectors on the hyperplanes, and nothing else."""
    planes = np.random.default_rng(0).standard_normal((DIM, BITS), np.float32)
    start = process_time()
    for _ in range(count // BLOCK + 1):
        _ = encoder.vectors @ planes
    return process_time() - start


def seconds_of_normalising(texts: Texts) -> tuple[float, float]:
    """Making the texts and bringing them into the form that is embedded: block by block, and one by one."""
    start = process_time()
    for first in range(0, len(texts), BLOCK):
        all_for_embedding(texts[first : first + BLOCK])
    together = process_time() - start
    start = process_time()
    for text in texts:
        for_embedding(text)
    return together, process_time() - start


def measure(count: int) -> None:
    texts, encoder = Texts(count), Blocks()
    scores = np.random.default_rng(1).standard_normal(count)
    cod3s.select(texts[:BLOCK], 10, encoder=encoder, method="signatures")  # what every call needs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = process_time()
    selection = cod3s.select(texts, 10, scores=scores, encoder=encoder, method="signatures")
    seconds = process_time() - start
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    products = seconds_of_products(encoder, count)
    normalising, one_by_one = seconds_of_normalising(texts)
    print(
        f"{count:>10,} candidates: {seconds:5.1f} s of one core, {seconds / products:4.1f} x the products alone, "
        f"{normalising / seconds:4.0%} normalising text ({one_by_one / normalising:.1f} x as long one by one), "
        f"{more:4.0f} MiB",
        flush=True,
    )
    assert len(selection) == 10


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(int(sys.argv[2]))
    else:
        for size in sys.argv[1:] or ["10000", "100000", "1000000", "10000000"]:
            subprocess.run([sys.executable, __file__, "measure", size], check=True)
