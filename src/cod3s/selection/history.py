"""Texts to keep away from or near to (`unlike`, `like`): how similar each candidate is to the nearest of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors
from cod3s.io.tables import guessed_kind, open_table
from cod3s.selection.candidates import Source, check_texts
from cod3s.text import is_visible

Texts = Iterable[str] | Path
_BLOCK = 8192  # texts embedded together, so that a file of any length takes the same memory
_MOST_HELD = 50_000  # vectors kept, so that several groups do not read the texts again


@dataclass
class History:
    """Texts and, once they were read for the first time, their vectors if there are few."""

    texts: Texts
    name: str
    _blocks: list[Vectors] | None = None

    def nearest(self, source: Source, vectors: Vectors) -> npt.NDArray[np.float64]:
        """The cosine of each vector to the nearest of the texts; -1 if there are none."""
        cosines = np.full(len(vectors), -1.0)
        for block in self._vectors(source):
            np.maximum(cosines, (vectors @ block.T).max(axis=1), out=cosines)
        return cosines

    def read(self) -> Iterator[str]:
        """The texts one by one; of a file, its lines, or the field or column `text`."""
        return iter(self.texts) if not isinstance(self.texts, Path) else _read_file(self.texts)

    def _vectors(self, source: Source) -> Iterator[Vectors]:
        if self._blocks is not None:
            yield from self._blocks
            return
        held: list[Vectors] = []
        stream = filter(is_visible, self.read())
        while texts := list(islice(stream, _BLOCK)):
            block = source.embed(texts)
            if len(held) * _BLOCK < _MOST_HELD:
                held.append(block)
            yield block
        if len(held) * _BLOCK < _MOST_HELD:
            self._blocks = held


def open_history(texts: Texts | None, name: str) -> History | None:
    """The texts of an option, checked as far as possible before they are read; None without them."""
    if texts is None:
        return None
    return History(texts if isinstance(texts, Path) else check_texts(texts, f"text of {name}"), name)


def _read_file(path: Path) -> Iterator[str]:
    with open_table(path, guess=lambda first: "jsonl" if guessed_kind(first) == "jsonl" else "lines") as table:
        yield from (row.record for row in table) if table.kind == "lines" else map(table.text("text"), table)
