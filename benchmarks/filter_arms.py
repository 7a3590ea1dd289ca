"""One file with several choices of pairs, each as a corpus of its own, to compare filters at equal budget.

    python benchmarks/filter_arms.py causal-pairs.tsv.gz everyday-pairs.tsv.gz -o arms.tsv --pairs 3000
    cod3s prepare arms.tsv -o arms --filter none --held-out 0.05 --dev 100 --test 0 --no-bins
    cod3s train arms -o run-clean --corpora none:0,relevant:0,chosen:0,both:0 …

All choices share the vocabulary of the whole file, and no two of them have a pair in common.
"""

import argparse
import csv
import gzip
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from cod3s import load_encoder
from cod3s.corpus.filters import find_filters, removed_by
from cod3s.corpus.sql import connect
from cod3s.io.disk import open_text
from cod3s.text import for_embedding

COLUMNS = ("cause", "effect", "order", "pattern", "corpus")
Rows = list[dict[str, str]]
CHOOSER = Path(__file__).parents[1] / "recipes" / "choose_pairs.py"
LEAST_RELEVANCE, MOST_RELEVANCE = 0.3, 0.85


def read(path: Path) -> Rows:
    with open_text(path) as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def write(path: Path, rows: Rows) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
        table.writeheader()
        table.writerows(rows)


def clean(rows: Rows) -> Rows:
    """What `cod3s prepare --filter clean` leaves."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "rows.tsv", [{**row, "pattern": str(number)} for number, row in enumerate(rows)])
        left = connect().execute(
            f"""SELECT pattern FROM (
            SELECT clean(cause) AS source, clean(effect) AS target, bare(clean(cause)) AS source_bare,
            bare(clean(effect)) AS target_bare, pattern, corpus
            FROM read_csv('{folder}/rows.tsv', delim='\t', quote='', header=true, all_varchar=true))
            WHERE {removed_by(find_filters("clean"))} IS NULL"""
        )
        return [rows[number] for number in sorted(int(number) for (number,) in left.fetchall())]


def relevant(rows: Rows) -> Rows:
    """Pairs whose sides have something to do with each other and do not repeat each other."""
    encoder = load_encoder("fast")
    causes, effects = (encoder.encode([for_embedding(row[side]) for row in rows]) for side in ("cause", "effect"))
    cosines = (causes * effects).sum(axis=1).tolist()
    return [row for row, cosine in zip(rows, cosines, strict=True) if LEAST_RELEVANCE <= cosine <= MOST_RELEVANCE]


def chosen(rows: Rows) -> Rows:
    """What the recipe of the default bundle chooses: sensible corpora and patterns, no names, relevant sides."""
    with tempfile.TemporaryDirectory() as folder:
        raw, picked = Path(folder) / "rows.tsv", Path(folder) / "chosen.tsv"
        write(raw, rows)
        (raw.with_suffix(".tsv.gz")).write_bytes(gzip.compress(raw.read_bytes()))
        subprocess.run(
            [sys.executable, CHOOSER, raw.with_suffix(".tsv.gz"), "-o", picked], check=True, stdout=sys.stderr
        )
        return read(picked)


ARMS: dict[str, Sequence[Callable[[Rows], Rows]]] = {
    "none": (),
    "clean": (clean,),
    "relevant": (relevant,),
    "chosen": (chosen,),
    "both": (chosen, clean),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=3000, help="of each choice")
    options = parser.parse_args()
    pool = [row for path in options.files for row in read(path)]
    random.Random(1234).shuffle(pool)
    slice_rows = min(len(pool) // len(ARMS), 20 * options.pairs)
    everything: Rows = []
    for number, (name, steps) in enumerate(ARMS.items()):
        rows = pool[number * slice_rows : (number + 1) * slice_rows]
        for step in steps:
            rows = step(rows)
        print(f"{name}: {len(rows):,} of {slice_rows:,} are left", file=sys.stderr)
        everything += [{**row, "corpus": name} for row in rows[: options.pairs]]
    write(options.output, everything)


if __name__ == "__main__":
    main()
