"""Read tables record by record (JSONL, CSV, TSV, plain lines, Parquet), and write tables of text.

Nothing but Parquet needs a library beyond the base install. Records are complete, so that a command can print them
again.
"""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TextIO

from cod3s.errors import FileFormatError, Progress, SentenceError, UsageError, did_you_mean, require
from cod3s.io.disk import display_name, existing_file, open_text, replaced_file
from cod3s.text import clean

KINDS = ("jsonl", "csv", "tsv", "lines", "parquet")
MAX_FIELD = 10_000_000  # characters of a table cell
_BATCH_ROWS = 1024


@dataclass(frozen=True, slots=True)  # a file may hold millions
class Row:
    """One record (a JSON object, a list of cells or a plain line) and the number of the line it ends in.

    `written` is the line as it was read; it is empty for cells, which can span several lines.
    """

    line: int
    record: Any
    written: str = ""


class Table:
    """The records of a file of a known kind; `header` is empty for kinds without a header.

    The records of a Parquet file are JSON objects, so its kind is jsonl.
    """

    def __init__(self, lines: Iterable[str], name: str, kind: str, stream: TextIO | None = None) -> None:
        self.name = name
        self.kind = kind
        self._lines, self._stream = lines, stream
        self.header: list[str] = []
        if kind in ("csv", "tsv"):
            csv.field_size_limit(MAX_FIELD)
            # In TSV files, quotes and backslashes are ordinary characters.
            tabs = kind == "tsv"
            self._cells = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(lines)
            self.header = self._next_cells() or []

    @property
    def line_end(self) -> str:
        """What ends the lines of the file, as far as it was read: \\n, or \\r\\n if all of them do."""
        return "\r\n" if self._stream is not None and self._stream.newlines == "\r\n" else "\n"

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
    """The kind of table that a file's name promises (.tsv, .csv, .jsonl, also with .gz, or .parquet), or None."""
    kinds = [suffix[1:] for suffix in path.suffixes if suffix in (".tsv", ".csv", ".jsonl", ".parquet")]
    return kinds[-1] if kinds else None


def guessed_kind(line: str) -> str:
    """The kind of table that starts with this line, for files whose name does not say."""
    if line.lstrip().startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in line else "csv"


@contextmanager
def open_table(
    path: Path,
    kind: str | None = None,
    *,
    guess: Callable[[str], str] = guessed_kind,
    columns: Sequence[str] | None = None,
    errors: Literal["strict", "replace"] = "strict",
) -> Iterator[Table]:
    """The table in `path` (`-` is standard input).

    `kind` goes before the file's name, and both before the `guess` from its first line. Only these `columns` of a
    Parquet file are read.
    """
    kind = kind or kind_of(path)
    if kind == "parquet":
        yield Table(_parquet_lines(path, columns), display_name(path), "jsonl")
        return
    with open_text(path, errors) as stream:
        first = next(stream, "")
        lines = chain([first] if first else [], stream)
        yield Table(lines, display_name(path), kind or guess(first), stream)


def _parquet_lines(path: Path, columns: Sequence[str] | None) -> Iterator[str]:
    """The rows of a Parquet file as JSON; no text in a requested column is empty text."""
    arrow, parquet = require("pyarrow", "corpus"), require("pyarrow.parquet", "corpus")
    try:
        with parquet.ParquetFile(existing_file(path)) as file:
            for name in columns or ():
                if name not in file.schema_arrow.names:
                    hint = did_you_mean(name, file.schema_arrow.names)
                    raise FileFormatError(f"{path} has no column {name!r}", hint=hint)
            empty = dict.fromkeys(columns or (), "")
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                for record in batch.to_pylist():
                    filled = empty | {name: value for name, value in record.items() if value is not None}
                    yield json.dumps(filled, ensure_ascii=False, default=str)
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:  # OSError: a damaged page or footer
        raise FileFormatError(f"{path} is not a readable Parquet file: {error}") from error


def read_sentences(path: Path, column: str | None = None, skipped: Progress = lambda _: None) -> Iterator[str]:
    """The cleaned sentences of `path` (`-` is standard input), streamed.

    Without `column`, each line is a sentence; with it, the file is a table. Lines and cells without a visible
    character are skipped and counted by `skipped`.
    """
    if column is None and (kind := kind_of(path)):
        raise FileFormatError(
            f"{path} is a table, judging by its name ({kind})", hint="name the field to read with --column"
        )
    for cell in _lines(path) if column is None else read_column(path, column):
        try:
            text = clean(cell)
        except SentenceError:
            skipped(1)
            continue
        yield text


def _lines(path: Path) -> Iterator[str]:
    with open_text(path) as stream:
        yield from stream


def read_column(path: Path, column: str, errors: Literal["strict", "replace"] = "strict") -> Iterator[str]:
    """The cells of a named column of a table with a header, or a field of JSON lines."""
    if kind_of(path) is None and str(path) != "-":
        raise FileFormatError(
            f"{path} has no columns to read", hint="--column is for .tsv, .csv, .jsonl and .parquet files"
        )
    with open_table(path, columns=[column], errors=errors) as table:
        yield from map(table.text(column), table)


Write = Callable[[Sequence[Sequence[str]]], None]
"""Takes rows of cells."""


def check_output_format(path: Path) -> str:
    """The format that the name of an output file asks for; a name that asks for none is an error."""
    kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if kind not in (".parquet", ".tsv", ".csv", ".jsonl") or (kind == ".parquet" and path.suffix == ".gz"):
        ending = f"the ending {path.suffix!r}" if path.suffix else "no ending"
        raise UsageError(
            f"{path.name} has {ending}, so its format is not known",
            hint="name it .parquet, .tsv, .csv or .jsonl; the last three also with .gz",
        )
    return kind[1:]


@contextmanager
def replaced_table(path: Path, columns: Sequence[str]) -> Iterator[Write]:
    """A function that takes rows; the finished table replaces `path` when the block ends without an error."""
    kind = check_output_format(path)
    with replaced_file(path) as partial:
        if kind == "parquet":
            with _parquet_writer(partial, columns) as write:
                yield write
            return
        with partial.open("wb") as raw:
            # Without a name and a time, equal rows give equal bytes.
            packed: Any = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if path.suffix == ".gz" else raw
            with io.TextIOWrapper(packed, encoding="utf-8", newline="") as stream:
                if kind != "jsonl":
                    stream.write(_written(kind, columns, columns))
                yield lambda rows: stream.writelines(_written(kind, columns, row) for row in rows)


@contextmanager
def _parquet_writer(path: Path, columns: Sequence[str]) -> Iterator[Write]:
    """Rows reach the file in groups, so that few are held in memory."""
    arrow, parquet = require("pyarrow", "corpus"), require("pyarrow.parquet", "corpus")
    schema = arrow.schema([(name, arrow.string()) for name in columns])
    held: list[Sequence[str]] = []

    def write(rows: Sequence[Sequence[str]], least: int = 1 << 16) -> None:
        held.extend(rows)
        if len(held) >= least:
            file.write_table(arrow.table([list(column) for column in zip(*held, strict=True)], schema=schema))
            held.clear()

    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        yield write
        write([], least=1)


def _written(kind: str, columns: Sequence[str], cells: Sequence[str]) -> str:
    """A line of a table; in cells between tabs or commas, white space becomes a single space."""
    if kind == "jsonl":
        return json.dumps(dict(zip(columns, cells, strict=True)), ensure_ascii=False) + "\n"
    plain = [" ".join(cell.split()) for cell in cells]
    if kind == "tsv":
        return "\t".join(plain) + "\n"
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(plain)
    return line.getvalue()
