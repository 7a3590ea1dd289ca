"""Reads sentences from a file: one a line, or one column of a table. Paths in, cleaned sentences out.

Lines and cells with nothing visible in them are skipped; everything else that cannot be read is an error.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from cod3s.errors import FileFormatError, SentenceError, did_you_mean
from cod3s.files import open_text
from cod3s.text import clean

MAX_FIELD = 10_000_000  # characters of one table cell


def read_sentences(path: Path, column: str | None = None) -> Iterator[str]:
    """The sentences of `path` (`-` is standard input), streamed.

    Without `column` each line is a sentence; with it the file is .tsv, .csv or .jsonl, maybe .gz or .zst.
    """
    with open_text(path) as stream:
        for cell in stream if column is None else read_column(stream, path, column):
            try:
                yield clean(cell)
            except SentenceError:
                continue


def read_column(stream: TextIO, path: Path, column: str) -> Iterator[str]:
    """The cells of one named column of a table with a header, or one field of JSON lines."""
    kinds = [suffix for suffix in path.suffixes if suffix in (".tsv", ".csv", ".jsonl")]
    if not kinds:
        raise FileFormatError(
            f"{path} has no columns that could be read", hint="--column is for .tsv, .csv and .jsonl files"
        )
    if kinds[-1] == ".jsonl":
        return _json_field(stream, path, column)
    return _table_column(stream, path, column, tabs=kinds[-1] == ".tsv")


def _table_column(stream: TextIO, path: Path, column: str, tabs: bool) -> Iterator[str]:
    csv.field_size_limit(MAX_FIELD)
    rows = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(stream)
    header = next(rows, [])
    if column not in header:
        raise FileFormatError(f"{path} has no column {column!r}", hint=did_you_mean(column, header))
    place = header.index(column)
    for row in rows:
        if len(row) != len(header):
            raise FileFormatError(f"{path}, line {rows.line_num}: {len(row)} cells, the header has {len(header)}")
        yield row[place]


def _json_field(stream: TextIO, path: Path, field: str) -> Iterator[str]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise FileFormatError(f"{path}, line {number}: not valid JSON ({error.msg})") from error
        if not isinstance(record, dict) or not isinstance(record.get(field), str):
            raise FileFormatError(f"{path}, line {number}: no text in a field {field!r}")
        yield record[field]
