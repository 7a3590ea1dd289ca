"""Raw anonymised ratings: a study's items and ratings in, CSV or Parquet out.

No names, no Prolific ids, no times of day: a rater is a pseudonym, `order` the place of a rating in their work.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cod3s.errors import require
from cod3s.files.disk import replaced_file
from cod3s.judge.exchange.spreadsheet import write_csv
from cod3s.judge.study.study import Item, Rating

COLUMNS = (
    "rater",
    "order",
    "item",
    "kind",
    "relation",
    "source",
    "target",
    "statement",
    "label",
    "systems",
    "score",
    "seconds",
    "revision",
)


def rating_rows(
    items: Sequence[Item], ratings: Sequence[Rating], names: Mapping[str, str]
) -> list[tuple[Any, ...]]:
    """A row a rating in the order of `COLUMNS`, by rater and order; the same for the same ratings."""
    by_id = {item.id: item for item in items}
    seen: Counter[str] = Counter()
    rows = []
    for rating in sorted(ratings, key=lambda rating: (names[rating.rater], rating.at, rating.item)):
        item = by_id[rating.item]
        seen[rating.rater] += 1
        rows.append(
            (
                names[rating.rater],
                seen[rating.rater],
                item.id,
                item.kind,
                item.relation,
                item.source,
                item.target,
                item.statement,
                item.label,
                " ".join(f"{credit.system}:{credit.rank or '?'}" for credit in item.of),
                rating.score,
                rating.seconds,
                rating.revision,
            )
        )
    return rows


def write_ratings_csv(path: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    """For spreadsheets, and for `cod3s judge import --from csv`."""
    write_csv(path, COLUMNS, rows)


def write_ratings_parquet(path: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    """For programs: the same rows with types, and texts as they are."""
    arrow = require("pyarrow", "evaluate")
    parquet = require("pyarrow.parquet", "evaluate")
    numbers = {
        "order": arrow.int64(),
        "score": arrow.int64(),
        "seconds": arrow.float64(),
        "revision": arrow.int64(),
    }
    schema = arrow.schema([(name, numbers.get(name, arrow.string())) for name in COLUMNS])
    table = arrow.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema=schema)
    with replaced_file(path) as partial:
        parquet.write_table(table, partial)
