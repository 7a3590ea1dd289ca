"""Read tables (CSV or TSV with a header, JSON lines, plain lines), and sentences from a file or a column.

Records are streamed and complete, so that a command can print them again unchanged.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from cod3s.errors import FileFormatError, Progress, SentenceError, did_you_mean
from cod3s.io.disk import display_name, open_text
from cod3s.text import clean

KINDS = ("jsonl", "csv", "tsv", "lines")
MAX_FIELD = 10_000_000  # characters of a table cell


@dataclass(frozen=True, slots=True)  # a file may hold millions
class Row:
    """One record (a JSON object, a list of cells or a plain line) and the number of the line it ends in.

    `written` is the line as it was read; it is empty for cells, which can span several lines.
    """

    line: int
    record: Any
    written: str = ""


class Table:
    """The records of a file of a known kind; `header` is empty for kinds without a header."""

    def __init__(self, lines: Iterable[str], name: str, kind: str) -> None:
        self.name = name
        self.kind = kind
        self._lines = lines
        self.header: list[str] = []
        if kind in ("csv", "tsv"):
            csv.field_size_limit(MAX_FIELD)
            # In TSV files, quotes and backslashes are ordinary characters.
            tabs = kind == "tsv"
            self._cells = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(lines)
            self.header = self._next_cells() or []

    def __iter__(self) -> Iterator[Row]:
        if self.kind == "jsonl":
            return self._objects()
        if self.kind == "lines":
            return self._plain_lines()
        return self._rows()

    def field(self, name: str) -> Callable[[Row], Any]:
        """A function that returns a field of a row; None for a JSON object without it."""
        if self.kind == "lines":
            raise FileFormatError(f"{self.name} contains plain lines, which have no field {name!r}")
        if self.kind == "jsonl":
            return lambda row: row.record.get(name)
        if name not in self.header:
            raise FileFormatError(f"{self.name} has no column {name!r}", hint=did_you_mean(name, self.header))
        column = self.header.index(name)
        return lambda row: row.record[column]

    def text(self, name: str) -> Callable[[Row], str]:
        """A function that returns a field of a row, which must be text."""
        get = self.field(name)

        def checked(row: Row) -> str:
            value = get(row)
            if not isinstance(value, str):
                raise FileFormatError(f"{self.name}, line {row.line}: no text in a field {name!r}")
            return value

        return checked

    def _plain_lines(self) -> Iterator[Row]:
        for number, line in enumerate(self._lines, 1):
            text = line.rstrip("\n")
            yield Row(number, text, text)

    def _rows(self) -> Iterator[Row]:
        while (cells := self._next_cells()) is not None:
            number = self._cells.line_num
            if not cells:  # a blank line
                continue
            if len(cells) != len(self.header):
                raise FileFormatError(
                    f"{self.name}, line {number}: {len(cells)} cells, but the header has {len(self.header)}"
                )
            yield Row(number, cells)

    def _next_cells(self) -> list[str] | None:
        try:
            return next(self._cells, None)
        except csv.Error as error:
            raise FileFormatError(f"{self.name}, line {self._cells.line_num}: {error}") from error

    def _objects(self) -> Iterator[Row]:
        for number, line in enumerate(self._lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                raise FileFormatError(f"{self.name}, line {number}: not valid JSON ({reason})") from error
            if not isinstance(record, dict):
                raise FileFormatError(f"{self.name}, line {number}: not a JSON object")
            yield Row(number, record, line.rstrip("\n"))


def kind_of(path: Path) -> str | None:
    """The kind of table that a file's name promises (.tsv, .csv or .jsonl, also with .gz or .zst), or None."""
    kinds = [suffix[1:] for suffix in path.suffixes if suffix in (".tsv", ".csv", ".jsonl")]
    return kinds[-1] if kinds else None


def read_sentences(path: Path, column: str | None = None, skipped: Progress = lambda _: None) -> Iterator[str]:
    """The cleaned sentences of `path` (`-` is standard input), streamed.

    Without `column`, each line is a sentence; with it, the file is a table. Lines and cells without a visible
    character are skipped and counted by `skipped`.
    """
    if column is None and (kind := kind_of(path)):
        raise FileFormatError(
            f"{path} is a table, judging by its name ({kind})", hint="name the field to read with --column"
        )
    with open_text(path) as stream:
        for cell in stream if column is None else read_column(stream, path, column):
            try:
                text = clean(cell)
            except SentenceError:
                skipped(1)
                continue
            yield text


def read_column(stream: TextIO, path: Path, column: str) -> Iterator[str]:
    """The cells of a named column of a table with a header, or a field of JSON lines."""
    kind, lines = kind_of(path), chain(stream)
    if kind is None and str(path) == "-":
        first = next(stream, "")
        kind, lines = guessed_kind(first), chain([first], stream)
    if kind is None:
        raise FileFormatError(f"{path} has no columns to read", hint="--column is for .tsv, .csv and .jsonl files")
    table = Table(lines, display_name(path), kind)
    return map(table.text(column), table)


def guessed_kind(line: str) -> str:
    """The kind of table that starts with this line, for input from a pipe, which has no file name."""
    if line.lstrip().startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in line else "csv"
