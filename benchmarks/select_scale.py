"""Measure the processor time and peak memory of selecting k of many candidates, the encoder left out.

    python benchmarks/select_scale.py [CANDIDATES...] [-k 10] [--method auto]

Each size runs in a process of its own, so that its peak memory is its own. The texts are made when they are read
and the vectors come from one block, so that neither counts. `products` is the time of the matrix products that any
signing of these vectors needs, in the same process: the ratio does not depend on the machine's mood.
"""

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from time import process_time
from typing import overload

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import cod3s
from cod3s.selection import BITS

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


def measure(count: int, k: int, method: str) -> None:
    texts, encoder = Texts(count), Blocks()
    scores = np.random.default_rng(1).standard_normal(count)
    cod3s.select(texts[: 2 * BLOCK], k, encoder=encoder, method=method)  # what every call needs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = process_time()
    selection = cod3s.select(texts, k, scores=scores, encoder=encoder, method=method)
    seconds = process_time() - start
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    products = seconds_of_products(encoder, count)
    print(
        f"{count:>10,} candidates, k {k}, {selection.method}: {seconds:6.2f} s of one core, "
        f"{seconds / products:4.1f} x the products alone, {more:4.0f} MiB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("candidates", type=int, nargs="*", default=[10_000, 100_000, 1_000_000, 10_000_000])
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        measure(arguments.candidates[0], arguments.k, arguments.method)
        return
    for count in arguments.candidates:
        command = [sys.executable, __file__, str(count), "-k", str(arguments.k), "--method", arguments.method]
        subprocess.run([*command, "--one"], check=True)


if __name__ == "__main__":
    main()
