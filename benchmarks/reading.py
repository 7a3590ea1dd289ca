"""The sources of docs/measured/reading.tsv, which several benchmarks answer."""

import csv
from pathlib import Path

READING = Path(__file__).parent.parent / "docs" / "measured" / "reading.tsv"

Asked = tuple[str, str]
"""A source and a relation."""


def read_asked() -> list[Asked]:
    """Each source with its relation, once, in the order of the file."""
    with READING.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return list(dict.fromkeys((row["source"], row["relation"]) for row in rows))
