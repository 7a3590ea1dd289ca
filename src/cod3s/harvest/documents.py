"""Read raw text in pieces of bounded size, from plain text, JSON lines, CSV, TSV or Parquet."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cod3s.harvest.splitting import sentences
from cod3s.io.disk import open_text
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
    if kind_of(path):
        for text in read_column(path, column, errors):
            yield text + "\n\n"
        return
    with open_text(path, errors, max_line_bytes=None) as stream:
        while block := stream.read(PIECE):
            yield block


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
