"""A plain table of ratings → incoming ratings: .csv, .tsv or .jsonl with `rater`, `item`, `score`, `seconds`."""

from collections.abc import Iterator
from pathlib import Path

from cod3s.files.disk import open_text
from cod3s.files.tables import Table, kind_of
from cod3s.judge.exchange.incoming import BadRow, Incoming


def read_ratings(path: Path) -> Iterator[Incoming | BadRow]:
    """A rating a row; other columns, such as those of our own export, are not looked at."""
    with open_text(path) as stream:
        table = Table(stream, str(path), kind_of(path) or "csv")
        fields = [table.field(name) for name in ("rater", "item", "score")]
        timed = table.kind == "jsonl" or "seconds" in table.header
        time = table.field("seconds") if timed else None
        for row in table:
            place = f"line {row.line}"
            rater, item, score = ("" if (own := field(row)) is None else str(own).strip() for field in fields)
            try:
                seconds = float((time(row) if time else 0) or 0)
            except ValueError:
                yield BadRow(place, f"{time(row) if time else ''!r} is no time in seconds")
                continue
            yield Incoming(place, rater, item, score, seconds)
