"""Files of ratings: anonymised CSV and Parquet exports, and tables of ratings to import.

Exports hold no names, no Prolific ids and no times of day: a rater is a pseudonym, and `order` counts the ratings
of each rater.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cod3s.errors import require
from cod3s.io.disk import open_text, replaced_file
from cod3s.io.tables import Table, kind_of
from cod3s.study.exchange.incoming import BadRow, Incoming
from cod3s.study.plan.folder import Item, Rating

# A cell that begins with =, +, -, @ or a control character may be run as a formula (CSV injection); an apostrophe
# in front makes it text. Statements come from other people's models, so this can happen.
_FORMULA = re.compile(r"\s*[=+\-@\t\r\n＝＋－＠]")
_OF_ITEM = ("kind", "relation", "source", "target", "statement", "label")
COLUMNS = ("rater", "order", "item", *_OF_ITEM, "systems", "score", "seconds", "revision")


def rating_rows(
    items: Sequence[Item], ratings: Sequence[Rating], names: Mapping[str, str]
) -> list[tuple[Any, ...]]:
    """One row per rating with the values of `COLUMNS`, sorted by rater and order."""
    by_id = {item.id: item for item in items}
    seen: Counter[str] = Counter()
    rows = []
    for rating in sorted(ratings, key=lambda rating: (names[rating.rater], rating.at, rating.item)):
        item = by_id[rating.item]
        seen[rating.rater] += 1
        described = [getattr(item, name) for name in _OF_ITEM]
        systems = " ".join(f"{credit.system}:{credit.rank or '?'}" for credit in item.of)
        identified = (names[rating.rater], seen[rating.rater], item.id)
        rows.append((*identified, *described, systems, rating.score, rating.seconds, rating.revision))
    return rows


def write_ratings_parquet(path: Path, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write rows for programs: typed, with texts unchanged."""
    arrow = require("pyarrow", "evaluate")
    parquet = require("pyarrow.parquet", "evaluate")
    numbers = {**dict.fromkeys(("order", "score", "revision"), arrow.int64()), "seconds": arrow.float64()}
    schema = arrow.schema([(name, numbers.get(name, arrow.string())) for name in COLUMNS])
    table = arrow.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema=schema)
    with replaced_file(path) as partial:
        parquet.write_table(table, partial)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file that is safe to open in a spreadsheet: formulas are marked as text."""
    with replaced_file(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows([safe_cell(value) for value in row] for row in rows)


def safe_cell(value: Any) -> Any:
    """The value, with an apostrophe in front if a spreadsheet would compute it."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def read_ratings(path: Path) -> Iterator[Incoming | BadRow]:
    """Ratings of a .csv, .tsv or .jsonl file with `rater`, `item`, `score` and maybe `seconds`.

    Other columns, such as those of our export, are ignored.
    """
    with open_text(path) as stream:
        table = Table(stream, str(path), kind_of(path) or "csv")
        fields = [table.field(name) for name in ("rater", "item", "score")]
        timed = table.kind == "jsonl" or "seconds" in table.header
        time = table.field("seconds") if timed else lambda _row: 0.0  # unknown
        for row in table:
            location = f"line {row.line}"
            rater, item, score = ("" if (value := field(row)) is None else str(value).strip() for field in fields)
            try:
                seconds = float(time(row) or 0)
            except (ValueError, TypeError, OverflowError):
                yield BadRow(location, f"{time(row)!r} is not a time in seconds")
                continue
            yield Incoming(location, rater, item, score, seconds)
