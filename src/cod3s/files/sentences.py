"""Read sentences from a file: one per line, or one column of a table."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TextIO

from cod3s.errors import FileFormatError, Progress, SentenceError
from cod3s.files.disk import display_name, open_text
from cod3s.files.tables import Table, kind_of
from cod3s.text import clean


def read_sentences(path: Path, column: str | None = None, skipped: Progress = lambda _: None) -> Iterator[str]:
    """The cleaned sentences of `path` (`-` is standard input), streamed.

    Without `column`, each line is a sentence; with it, the file is a table. Lines and cells without a visible
    character are skipped and counted by `skipped`.
    """
    if column is None and (kind := kind_of(path)):
        raise FileFormatError(
            f"{path} is a table by its name ({kind})", hint="name the field to read with --column"
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
    """The cells of one named column of a table with a header, or one field of JSON lines."""
    kind, lines = kind_of(path), chain(stream)
    if kind is None and str(path) == "-":
        first = next(stream, "")
        kind, lines = _guessed_kind(first), chain([first], stream)
    if kind is None:
        raise FileFormatError(f"{path} has no columns to read", hint="--column is for .tsv, .csv and .jsonl files")
    table = Table(lines, display_name(path), kind)
    return map(table.text(column), table)


def _guessed_kind(line: str) -> str:
    """The kind of table that starts with this line: what comes from a pipe has no name to tell it."""
    if line.lstrip().startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in line else "csv"
