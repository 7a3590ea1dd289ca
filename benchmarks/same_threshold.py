"""Within how many bits do two sentences say the same? F1 of finding STSbenchmark's pairs of score 4 and above.

    python benchmarks/same_threshold.py stsb-en-train.csv

A pair is called the same when its signatures differ in at most a share of their bits; means over five seeds.
"""

import sys
from pathlib import Path

import numpy as np

from cod3s.encode import load_encoder
from cod3s.evaluate.sts import read_sts
from cod3s.signatures import hamming, pack, random_code
from cod3s.text import for_embedding

SHARES = (8, 6, 5, 4, 3)


def f1(called: np.ndarray, same: np.ndarray) -> float:
    return float(2 * (called & same).sum() / (called.sum() + same.sum()))


def main() -> None:
    pairs = read_sts(Path(sys.argv[1])).pairs
    same = np.array([pair.score >= 4 for pair in pairs])
    print(f"{len(pairs)} pairs, {same.mean():.1%} with a score of 4 and above")
    print(f"{'encoder':10}{'bits':>6}" + "".join(f"{f'bits/{share}':>9}" for share in SHARES))
    for name in ("static", "fast"):
        encoder = load_encoder(name)
        first, second = (encoder.encode([for_embedding(getattr(pair, side)) for pair in pairs]) for side in "ab")
        for bits in (16, 64, 128, 256):
            codes = [random_code(bits, encoder.dim, seed) for seed in range(1234, 1239)]
            far = [hamming(pack(code.sign(first)), pack(code.sign(second))) for code in codes]
            means = [np.mean([f1(distances <= bits // share, same) for distances in far]) for share in SHARES]
            print(f"{name:10}{bits:6}" + "".join(f"{mean:9.3f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
