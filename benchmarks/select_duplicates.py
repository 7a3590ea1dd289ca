"""Measure threshold mode: time, memory and recall against brute force, beside SemHash, in one run.

    pip install semhash
    python benchmarks/select_duplicates.py sentences.txt [--rows 50000] [--brute-force] [--semhash]

`sentences.txt` holds a sentence per line (also .gz). Each way runs in a process of its own, so that its peak
memory is its own, and encodes the sentences itself with the same static vectors. Recall is the share of the rows
that an exact greedy pass drops.
"""

import argparse
import os
import resource
import subprocess
import sys
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from cod3s.encode import Vectors, load_encoder
from cod3s.io.disk import open_text
from cod3s.selection.candidates import Rows, open_source
from cod3s.selection.duplicates import find_distinct
from cod3s.text import all_for_embedding

SEED = 1234
_BLOCK = 512


def read_sentences(path: Path, rows: int) -> list[str]:
    with open_text(path) as stream:
        texts = [line.rstrip("\n") for line in islice(filter(str.strip, stream), rows)]
    if len(texts) < rows:
        raise SystemExit(f"{path} has {len(texts):,} sentences, fewer than {rows:,}")
    return texts


def drop_by_index(texts: list[str], threshold: float) -> Rows:
    source = open_source(texts, "static", None, 128, SEED)
    return find_distinct(source, None, threshold, seed=SEED).dropped.positions


def drop_by_brute_force(texts: list[str], threshold: float) -> Rows:
    """Each row compared with every row that was kept before it."""
    vectors: Vectors = load_encoder("static").encode(all_for_embedding(texts))
    kept, count = np.empty_like(vectors), 0
    dropped = np.zeros(len(vectors), bool)
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        if count:
            dropped[start : start + _BLOCK] = (block @ kept[:count].T).max(axis=1) >= threshold - 1e-6
        near = block @ block.T >= threshold - 1e-6
        for row in np.flatnonzero(~dropped[start : start + _BLOCK]):
            earlier = np.flatnonzero(near[row, :row]) + start
            if (~dropped[earlier]).any():
                dropped[start + row] = True
            else:
                kept[count] = block[row]
                count += 1
    return np.flatnonzero(dropped)


def drop_by_semhash(texts: list[str], threshold: float) -> Rows:
    from semhash import SemHash

    encoder = load_encoder("static")

    class Encoder:
        def encode(self, inputs: list[str], **_: object) -> Vectors:
            return encoder.encode(all_for_embedding(inputs))

    records = [{"text": text, "row": str(row)} for row, text in enumerate(texts)]
    index = SemHash.from_records(records, ["text"], model=Encoder())
    result = index.self_deduplicate(threshold)
    return np.setdiff1d(np.arange(len(texts)), [int(record["row"]) for record in result.selected])


WAYS = {"index": drop_by_index, "brute force": drop_by_brute_force, "semhash": drop_by_semhash}


def run(way: str, arguments: argparse.Namespace, output: Path) -> None:
    """One way in this process: prints its figures and saves the rows that it dropped."""
    texts = read_sentences(arguments.sentences, arguments.rows)
    load_encoder("static")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, processor = perf_counter(), process_time()
    dropped = WAYS[way](texts, arguments.threshold)
    wall, processor = perf_counter() - wall, process_time() - processor
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(
        f"{way:12} {len(dropped):>9,} dropped, {processor:7.1f} s of one core, {wall:7.1f} s, {memory:6.0f} MiB",
        flush=True,
    )
    np.save(output, dropped)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--threshold", type=float, default=0.9)
    parser.add_argument("--brute-force", action="store_true")
    parser.add_argument("--semhash", action="store_true")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument(
        "--output", type=Path, default=Path("dropped"), help="folder for the rows that each dropped"
    )
    arguments = parser.parse_args()
    if arguments.way:
        run(arguments.way, arguments, arguments.output / f"{arguments.way}.npy")
        return
    arguments.output.mkdir(exist_ok=True)
    print(f"{arguments.rows:,} rows | threshold {arguments.threshold} | static")
    wanted = ["index"] + ["brute force"] * arguments.brute_force + ["semhash"] * arguments.semhash
    for way in wanted:
        subprocess.run([sys.executable, *sys.argv, "--way", way], check=True)
    if arguments.brute_force:
        exact = np.load(arguments.output / "brute force.npy")
        for way in wanted:
            found = np.isin(exact, np.load(arguments.output / f"{way}.npy")).mean()
            print(f"{way:12} recall {found:.4f}")


if __name__ == "__main__":
    main()
