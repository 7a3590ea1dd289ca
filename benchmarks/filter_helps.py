"""Does filtering help? The role `sentence` of `effect`, learned from filtered pairs and from the same file's pairs
unfiltered, with the same processor time on one core, and judged on the held-out pairs of the filtered corpus.

    cod3s prepare pairs.tsv.gz -o plain --relation effect
    cod3s prepare pairs.tsv.gz -o clean --filter clean
    OMP_NUM_THREADS=1 python benchmarks/filter_helps.py plain clean OUTPUT --minutes 10

One line of JSON a model. Compare losses by the word: the pieces are learned from each corpus. No sentence that a
model is judged on was in what it learned from.
"""

import argparse
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from training_choices import run

from cod3s.files.disk import read_json, write_json

RELATION, SIDES = "effect", ("source", "target")


def mixed(learn: Path, judge: Path, folder: Path) -> Path:
    """A corpus of one relation: `judge`'s held-out pairs, and the training pairs of `learn` that share none."""
    facts = read_json(learn / "manifest.json")
    facts["relations"] = {RELATION: {**facts["relations"][RELATION], "bins": None}}
    (folder / RELATION).mkdir(parents=True, exist_ok=True)
    write_json(folder / "manifest.json", facts)
    shutil.copytree(learn / "code", folder / "code", dirs_exist_ok=True)
    held_out = sorted((judge / RELATION).glob("dev-*.parquet"))
    for shard in held_out:
        shutil.copy(shard, folder / RELATION)
    tables = [pq.read_table(shard, columns=list(SIDES)) for shard in held_out]
    seen = pa.chunked_array([chunk for table in tables for side in SIDES for chunk in table[side].chunks])
    for shard in sorted((learn / RELATION).glob("train-*.parquet")):
        rows = pq.read_table(shard)
        for side in SIDES:
            rows = rows.filter(pc.invert(pc.is_in(rows[side], value_set=seen)))
        pq.write_table(rows, folder / RELATION / shard.name)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plain", type=Path)
    parser.add_argument("clean", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    given = parser.parse_args()
    for name, corpus in (("plain", given.plain), ("clean", given.clean)):
        figures = run(
            "default",
            mixed(corpus, given.clean, given.output / f"{name}-corpus"),
            given.output / name,
            given.minutes,
        )
        print(json.dumps({"learned from": name, **figures}), flush=True)


if __name__ == "__main__":
    main()
