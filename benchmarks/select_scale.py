"""Processor time and peak memory of selecting 10 from many candidates by signatures, the encoder left out.

    python benchmarks/select_scale.py [CANDIDATES...]

Each size runs in a process of its own, so that its peak memory is its own. The vectors are made beforehand, one
block that is handed out again and again, so that drawing them costs nothing.
"""

import resource
import subprocess
import sys
from collections.abc import Sequence
from time import process_time

import numpy as np

import cod3s

DIM, BLOCK = 256, 8192


class Blocks:
    """An encoder that costs nothing: unit vectors around 2,000 centres."""

    id, dim = "made-up", DIM

    def __init__(self) -> None:
        draw = np.random.default_rng(0)
        centres = draw.standard_normal((2000, DIM), np.float32)
        vectors = centres[draw.integers(0, 2000, BLOCK)] + 0.3 * draw.standard_normal((BLOCK, DIM), np.float32)
        self._vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        found: np.ndarray = self._vectors[: len(sentences)]
        return found


def measure(number: int) -> None:
    texts = [f"Candidate {row} of many." for row in range(number)]
    scores = np.random.default_rng(1).standard_normal(number)
    encoder = Blocks()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = process_time()
    found = cod3s.select(texts, 10, scores=scores, encoder=encoder)
    seconds = process_time() - start
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    print(
        f"{number:>9,} candidates: {seconds:5.1f} s of one core, {more:4.0f} MiB more than their texts", flush=True
    )
    assert len(found.selected) == 10


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(int(sys.argv[2]))
    else:
        for size in sys.argv[1:] or ["10000", "100000", "1000000"]:
            subprocess.run([sys.executable, __file__, "measure", size], check=True)
