"""What each filter of a preset removes by itself, by corpus: the table of docs/measured/corpus.md.

cod3s prepare pairs.tsv.gz -o all --filter none --encoder none --dev 0 --test 0
python benchmarks/filter_counts.py all clean
"""

import sys
from pathlib import Path

from cod3s.cli.output import print_table
from cod3s.corpus.filters import Filter, find_filters, removed_by
from cod3s.corpus.sql import connect


def count(corpus: Path, filters: list[Filter]) -> dict[str, list[int]]:
    """For each corpus of the pairs: its pairs, then how many each filter removes, then all of them together."""
    wanted = [*(rule.removes for rule in filters), f"{removed_by(filters)} IS NOT NULL"]
    columns = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in wanted)
    rows = connect().execute(
        f"""SELECT corpus, count(*), {columns} FROM (
            SELECT source, target, corpus, bare(source) AS source_bare, bare(target) AS target_bare
            FROM read_parquet('{corpus}/*/train-*.parquet')) GROUP BY corpus ORDER BY count(*) DESC, corpus"""
    )
    return {name: counts for name, *counts in rows.fetchall()}


def main() -> None:
    corpus, preset = Path(sys.argv[1]), sys.argv[2]
    filters = find_filters(preset)
    by_corpus = count(corpus, filters)
    total = [sum(column) for column in zip(*by_corpus.values(), strict=True)]
    table = [
        (name, *(f"{100 * counts[row] / counts[0]:.1f}" for counts in by_corpus.values()), f"{total[row]:,}")
        for row, name in enumerate([*(rule.label for rule in filters), "any of them"], start=1)
    ]
    pairs = ("pairs", *(f"{counts[0]:,}" for counts in by_corpus.values()), f"{total[0]:,}")
    print_table(
        "Removed, % of a corpus", ("filter", *by_corpus, "pairs in all"), [pairs, *table], f"filter {preset}"
    )


if __name__ == "__main__":
    main()
