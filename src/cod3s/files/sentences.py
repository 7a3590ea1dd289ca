"""Reads sentences from a file: one a line, or one column of a table. Paths in, cleaned sentences out.

Lines and cells with nothing visible in them are skipped; everything else that cannot be read is an error.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from cod3s.errors import FileFormatError, Progress, SentenceError
from cod3s.files.disk import open_text
from cod3s.files.tables import Table, kind_of
from cod3s.text import clean


def read_sentences(path: Path, column: str | None = None, skipped: Progress = lambda _: None) -> Iterator[str]:
    """The sentences of `path` (`-` is standard input), streamed.

    Without `column` each line is a sentence; with it the file is .tsv, .csv or .jsonl, maybe .gz or .zst.
    `skipped` hears of each line or cell with nothing visible in it.
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
    kind = kind_of(path)
    if kind is None:
        raise FileFormatError(
            f"{path} has no columns that could be read", hint="--column is for .tsv, .csv and .jsonl files"
        )
    table = Table(stream, str(path), kind)
    return map(table.text(column), table)
