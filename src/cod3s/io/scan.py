"""Scan tables of any size with DuckDB: Parquet, CSV, TSV and JSONL, plain or gzip, and list the rejected rows.

A file is recognized by its content. Its text never becomes part of a query: only the path, as a quoted literal.
"""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cod3s.errors import FileFormatError, require
from cod3s.io.binary import refuse_formats
from cod3s.io.disk import check_gzip, damaged_gzip, display_name, read_start

MAX_LINE_BYTES = 1 << 20
"""A row of sentences is far shorter; the limit keeps memory flat for any file."""

_REASONS = {
    "TOO MANY COLUMNS": "it has more cells than the header",
    "MISSING COLUMNS": "it has fewer cells than the header",
    "INVALID ENCODING": "it is not UTF-8",
    "LINE SIZE OVER MAXIMUM": f"it is longer than {MAX_LINE_BYTES:,} bytes",
    "UNQUOTED VALUE": "a quoted cell does not end, or goes on after its quotation mark",
}
_FORMATS = "Parquet, JSONL, and TSV and CSV with a header, are read; the last three also with .gz"


@dataclass(frozen=True)
class Rejects:
    """How many lines DuckDB could not read, and the first few with their reasons."""

    lines: int
    examples: list[str]


@dataclass(frozen=True)
class Scan:
    """A table on disk: its kind, its columns (or the fields of its first record), and the source for FROM."""

    path: Path
    kind: str
    names: tuple[str, ...]
    source: str

    def text(self, name: str) -> str:
        """An SQL expression for the text in a column, by its name; NULL where there is no text."""
        if self.kind == "parquet":
            return f'"{name}"'
        if self.kind == "jsonl":
            path = literal(f'$."{name}"')
            return f"CASE WHEN json_valid(line) AND json_type(line, {path}) = 'VARCHAR' THEN line ->> {path} END"
        return f"cell{self.names.index(name)}"

    def take_rejects(self, connection: Any) -> Rejects:
        """The lines that a finished scan on this connection rejected; the next scan starts with none."""
        if "rejects" not in {name for (name,) in connection.execute("SHOW TABLES").fetchall()}:
            return Rejects(0, [])
        [(count,)] = connection.execute("SELECT count(DISTINCT line) FROM rejects").fetchall()
        first = "SELECT line, min(error_type::VARCHAR) FROM rejects GROUP BY line ORDER BY line LIMIT 3"
        rows = connection.execute(first).fetchall()
        connection.execute("DROP TABLE rejects; DROP TABLE reject_scans")
        reasons = _REASONS | ({"TOO MANY COLUMNS": "it has a control character"} if self.kind == "jsonl" else {})
        return Rejects(count, [f"line {line:,}: {reasons.get(kind, kind.lower())}" for line, kind in rows])

    def explain(self, error: Exception) -> FileFormatError:
        """The error of a scan that failed, in plain words."""
        if "GZIP" in str(error):
            return damaged_gzip(display_name(self.path), error)
        if "state machine" in str(error):
            return FileFormatError(
                f"{display_name(self.path)} has a carriage return inside a line",
                hint=r"remove it with `tr -d '\r'`, or replace it by a space",
            )
        message = str(error).partition("\n")[0]
        return FileFormatError(
            f"{display_name(self.path)} is damaged, or its columns are not text: {message}", hint=_FORMATS
        )


def connect(spill: Path | None = None, memory: str = "2GB") -> Any:
    """A connection to DuckDB that uses at most `memory` and spills the rest to the folder `spill`."""
    settings: dict[str, Any] = {"memory_limit": memory, "preserve_insertion_order": False}
    if spill is not None:
        settings["temp_directory"] = str(spill)
    return require("duckdb", "corpus").connect(config=settings)


def literal(text: str) -> str:
    """A string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def parquet_files(paths: Sequence[Path]) -> str:
    """The source for FROM that reads these Parquet files as one table."""
    return f"read_parquet([{', '.join(literal(str(path)) for path in paths)}])"


def open_scan(path: Path, *, columns: Sequence[str] = ()) -> Scan:
    """The table in a file; a TSV file without a header has these `columns`."""
    scan = _recognize(path, columns)
    if path.suffix == ".gz":
        check_gzip(path)  # before version 2, DuckDB takes a file that was cut short for a whole one
    return scan


def _recognize(path: Path, columns: Sequence[str]) -> Scan:
    """The table in a file, by how the file starts."""
    start = read_start(path)
    if start.startswith(b"PAR1"):
        return Scan(path, "parquet", _parquet_names(path), parquet_files([path]))
    refuse_formats(start, display_name(path))
    if columns:
        return Scan(path, "tsv", tuple(columns), _cells(path, "\t", len(columns), header=False))
    lines = start.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n").split(b"\n", 1)
    if not lines[0].strip():
        raise FileFormatError(f"{display_name(path)} is empty", hint="leave it out, or create it again")
    first = lines[0].rstrip(b"\r").decode(errors="replace")
    if first.lstrip().startswith("{"):
        # JSON escapes all control characters, so the separator is in no record.
        return Scan(
            path, "jsonl", _fields(first), _csv(path, "\1", ["line"], "quote = '', escape = '', header = false")
        )
    kind = "tsv" if "\t" in first else "csv"
    cells = first.split("\t") if kind == "tsv" else next(csv.reader([first]), [])
    names = tuple(cell.strip().lower() for cell in cells)
    if len(names) == 1:
        raise FileFormatError(
            f"{display_name(path)} starts with {first[:60]!r}, which is not a table", hint=_FORMATS
        )
    if doubled := sorted({name for name in names if names.count(name) > 1 and name}):
        raise FileFormatError(
            f"two columns of {display_name(path)} are called {doubled[0]!r}", hint="rename or remove one of them"
        )
    return Scan(path, kind, names, _cells(path, "\t" if kind == "tsv" else ",", len(names), header=True))


def _parquet_names(path: Path) -> tuple[str, ...]:
    try:
        return tuple(require("pyarrow.parquet", "corpus").read_schema(path).names)
    except (require("pyarrow", "corpus").ArrowException, OSError, UnicodeDecodeError) as error:
        raise FileFormatError(
            f"{display_name(path)} is a damaged Parquet file: {error}", hint="write it again"
        ) from error


def _fields(first: str) -> tuple[str, ...]:
    try:
        return tuple(json.loads(first))
    except (ValueError, RecursionError):
        return ()


def _cells(path: Path, separator: str, number: int, *, header: bool) -> str:
    # In TSV files, quotes and backslashes are ordinary characters.
    quote = '"' if separator == "," else ""
    names = [f"cell{position}" for position in range(number)]
    return _csv(
        path,
        separator,
        names,
        f"quote = {literal(quote)}, escape = {literal(quote)}, header = {str(header).lower()}",
    )


def _csv(path: Path, separator: str, names: Sequence[str], options: str) -> str:
    columns = ", ".join(f"{name}: 'VARCHAR'" for name in names)
    # Without `force_not_null`, empty cells would be NULL.
    return (
        f"read_csv({literal(str(path))}, delim = {literal(separator)}, {options}, "
        f"columns = {{{columns}}}, force_not_null = [{', '.join(names)}], auto_detect = false, "
        f"max_line_size = {MAX_LINE_BYTES}, "
        "store_rejects = true, rejects_table = 'rejects', rejects_scan = 'reject_scans')"
    )
