"""Read raw text in pieces of bounded size, from plain text, JSON lines, CSV, TSV or Parquet."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cod3s.errors import FileFormatError, did_you_mean, require
from cod3s.harvest.splitting import sentences
from cod3s.io.disk import MAX_LINE_BYTES, existing_file, open_text
from cod3s.io.tables import kind_of, read_column

PIECE = 1 << 18  # characters: enough to keep a process busy, few enough to hold dozens of pieces in memory

# A sentence that starts like this may have its cause in the sentence before: do not cut between them.
_REFERS_BACK = re.compile(
    r"\W*(?:and |but )?(?:so|therefore|thus|hence|consequently|that|this|as a)\b", re.IGNORECASE
)

Errors = Literal["strict", "replace"]


@dataclass(frozen=True)
class Piece:
    """Whole paragraphs of a file, or whole sentences of a paragraph that is too long."""

    corpus: str  # the file's name without its folder
    text: str


def read_pieces(path: Path, *, column: str, errors: Errors = "strict") -> Iterator[Piece]:
    """The text of `path` (`-` is standard input) in order, in pieces of about `PIECE` characters."""
    # A file name need not be valid UTF-8, but the table of pairs must be.
    corpus = "-" if str(path) == "-" else path.name.encode(errors="replace").decode()
    for text in _cut_to_size(_blocks(path, column, errors)):
        yield Piece(corpus, text)


def _blocks(path: Path, column: str, errors: Errors) -> Iterator[str]:
    if ".parquet" in path.suffixes:
        yield from _parquet_texts(path, column)
        return
    is_table = kind_of(path) is not None
    with open_text(path, errors, max_line_bytes=MAX_LINE_BYTES if is_table else None) as stream:
        if is_table:
            for text in read_column(stream, path, column):
                yield text + "\n\n"
        else:
            while block := stream.read(PIECE):
                yield block


def _parquet_texts(path: Path, column: str) -> Iterator[str]:
    if path.suffix != ".parquet":
        raise FileFormatError(
            f"{path}: a compressed Parquet file cannot be read in pieces",
            hint="decompress it; Parquet compresses its columns itself",
        )
    arrow, parquet = require("pyarrow", "corpus"), require("pyarrow.parquet", "corpus")
    try:
        with parquet.ParquetFile(existing_file(path)) as file:
            field = {field.name: field.type for field in file.schema_arrow}.get(column)
            if field is None:
                raise FileFormatError(
                    f"{path} has no column {column!r}", hint=did_you_mean(column, file.schema_arrow.names)
                )
            if not (arrow.types.is_string(field) or arrow.types.is_large_string(field)):
                raise FileFormatError(f"{path}: column {column!r} holds {field}, but text is needed")
            for batch in file.iter_batches(batch_size=256, columns=[column]):
                for text in batch.column(0):
                    yield (text.as_py() or "") + "\n\n"
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:  # OSError: a damaged page or footer
        raise FileFormatError(f"{path} is not a readable Parquet file: {error}") from error


def _cut_to_size(blocks: Iterable[str]) -> Iterator[str]:
    """The same text in pieces that end where no pair can be cut in two."""
    rest = ""
    for block in blocks:
        rest += block
        while len(rest) >= PIECE:
            cut = _last_safe_cut(rest[: 2 * PIECE])
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


def _last_safe_cut(text: str) -> int:
    """Where to cut: after the last blank line, or between sentences, or at a space, or at the end."""
    blank = text.rfind("\n\n")
    if blank >= 0:
        return blank + 2
    end = len(text)
    for sentence in reversed(sentences(text[-PIECE // 8 :])[1:]):
        end = text.rindex(sentence, 0, end)
        if not _REFERS_BACK.match(sentence):
            return end
    return text.rfind(" ") + 1 or len(text)
