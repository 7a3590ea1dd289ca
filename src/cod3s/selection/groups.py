"""Read the candidates of the command line, with the records that they come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from cod3s.errors import FileFormatError, did_you_mean, require
from cod3s.io.disk import existing_file
from cod3s.io.tables import KINDS, Row, Table, guessed_kind, kind_of, open_table
from cod3s.options import find_name
from cod3s.selection.tables import column_of, join, texts_of

_SHEETS = (".xlsx", ".xls", ".ods")
Field = Callable[[Row], Any]


@dataclass(frozen=True, eq=False)
class Candidates:
    """All candidates of a file: texts, scores and groups if columns were named, and whole records.

    `arrow` is the table of a Parquet file; `line_end` is what ends the lines of other files.
    """

    name: str
    kind: str
    header: list[str]
    texts: list[str]
    scores: list[float] | None
    values: list[Any] | None
    rows: list[Row]
    line_end: str = "\n"
    arrow: Any = None

    def record(self, position: int) -> Any:
        """A whole record: an object, or a plain line."""
        if self.arrow is not None:
            return self.arrow.slice(position, 1).to_pylist()[0]
        row = self.rows[position]
        return dict(zip(self.header, row.record, strict=True)) if self.header else row.record

    def column(self, name: str) -> list[str]:
        """The texts in another column."""
        if self.arrow is not None:
            return texts_of(self.arrow, name)
        table = Table([], self.name, "jsonl" if self.kind == "jsonl" else "lines")
        if not self.header:
            return list(map(table.text(name), self.rows))
        if name not in self.header:
            raise FileFormatError(f"{self.name} has no column {name!r}", hint=did_you_mean(name, self.header))
        return [row.record[self.header.index(name)] for row in self.rows]


def read_candidates(
    path: Path,
    *,
    kind: str | None = None,
    columns: Sequence[str] = (),
    score_field: str | None = None,
    by: str | None = None,
) -> Candidates:
    """The candidates in `path` (`-` is standard input). A column that is not there is an error at once."""
    if kind is not None:
        find_name("format", kind, KINDS)
    if path.suffix in _SHEETS:
        raise FileFormatError(f"{path} is a spreadsheet, which is not read", hint="save it as .csv")
    if (kind or kind_of(path)) == "parquet":
        return _read_parquet(path, columns, score_field, by)

    def guess(first: str) -> str:
        known = guessed_kind(first)
        return known if columns or known == "jsonl" else "lines"

    with open_table(path, kind, guess=guess) as table:
        text, score, group = _fields(table, columns, score_field, by)
        texts: list[str] = []
        scores: list[float] = []
        values: list[Any] = []
        rows: list[Row] = []
        for row in table:
            texts.append(text(row))
            if score is not None:
                scores.append(_number(score(row), row, table.name, score_field))
            if group is not None:
                values.append(_group(group(row), row, table.name, by))
            rows.append(row)
        return Candidates(
            table.name,
            table.kind,
            table.header,
            texts,
            scores if score else None,
            values if group else None,
            rows,
            table.line_end,
        )


def _fields(
    table: Table, columns: Sequence[str], score_field: str | None, by: str | None
) -> tuple[Callable[[Row], str], Field | None, Field | None]:
    """How to get the text, the score and the group of a row."""
    is_bare = table.kind == "lines" and not columns
    texts = [] if is_bare else [table.text(column) for column in columns or ("text",)]
    score = None if score_field is None else table.field(score_field)
    group = None if by is None else table.field(by)

    def text(row: Row) -> str:
        return str(row.record) if is_bare else join(get(row) for get in texts)

    return text, score, group


def _read_parquet(path: Path, columns: Sequence[str], score_field: str | None, by: str | None) -> Candidates:
    parquet = require("pyarrow.parquet", "corpus")
    try:
        table = parquet.read_table(existing_file(path))
    except (OSError, ValueError) as error:  # Arrow's errors are one of the two
        raise FileFormatError(f"{path} is not a readable Parquet file: {error}") from error
    texts = texts_of(table, columns or None)
    rows = [Row(number, None) for number in range(1, len(texts) + 1)]
    scores, values = (None if name is None else column_of(table, name) for name in (score_field, by))
    if scores is not None:
        scores = [_number(score, row, str(path), score_field) for score, row in zip(scores, rows, strict=True)]
    if values is not None:
        values = [_group(value, row, str(path), by) for value, row in zip(values, rows, strict=True)]
    return Candidates(str(path), "parquet", table.column_names, texts, scores, values, rows, arrow=table)


def _group(value: Any, row: Row, name: str, field: str | None) -> Any:
    if value is None:
        raise FileFormatError(f"{name}, line {row.line}: nothing in a field {field!r}")
    return value


def _number(value: Any, row: Row, name: str, field: str | None) -> float:
    try:
        number = float("nan") if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not isfinite(number):
        raise FileFormatError(
            f"{name}, line {row.line}: the score in {field!r} is {value!r}, but must be a finite number",
            hint="leave such records out, or give them a low score",
        )
    return number
