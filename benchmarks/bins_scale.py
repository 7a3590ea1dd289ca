"""Time and peak memory of building bins and of bin statistics, the encoder left out.

    python benchmarks/bins_scale.py [SENTENCES...]

Each size runs in a process of its own, so that its peak memory is its own.
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

from cod3s.bins import BinStatistics, build_bins
from cod3s.signatures import random_code

DIM, BLOCK, LENGTHS = 384, 8192, (4, 8, 12, 16, 20, 24, 28, 32)


def stream(number: int) -> Iterator[tuple[list[str], np.ndarray]]:
    """Made-up sentences of ten words with vectors around 2,000 centres."""
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((2000, DIM), np.float32)
    for start in range(0, number, BLOCK):
        size = min(BLOCK, number - start)
        vectors = centres[draw.integers(0, len(centres), size)] + draw.standard_normal((size, DIM), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        words = draw.integers(0, 30_000, (size, 10))
        yield [f"{start + row} " + " ".join(f"w{word}" for word in words[row]) for row in range(size)], vectors


def measure(task: str, number: int) -> None:
    start = perf_counter()
    if task == "build":
        with tempfile.TemporaryDirectory() as folder:
            build_bins(Path(folder) / "bins.sqlite", stream(number), random_code(16, DIM), "made-up")
    else:
        statistics = BinStatistics(LENGTHS)
        code = random_code(max(LENGTHS), DIM)
        for sentences, vectors in stream(number):
            statistics.add(sentences, code.sign(vectors))
        statistics.rows()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{task}: {number:>9,} sentences, {perf_counter() - start:6.1f} s, peak {peak:5.0f} MiB", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(sys.argv[2], int(sys.argv[3]))
    else:
        for task in ("build", "stats"):
            for number in sys.argv[1:] or ["100000", "1000000"]:
                subprocess.run([sys.executable, __file__, "measure", task, number], check=True)
