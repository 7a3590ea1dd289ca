"""Hold the pairs of a corpus as token ids, at a few dozen bytes per pair."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, fields
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cod3s.errors import require
from cod3s.text import for_modelling
from cod3s.tokens.vocabulary import Vocabulary

Ids = npt.NDArray[np.int32]
Keys = npt.NDArray[np.uint64]
_REMEMBERED = 1 << 17  # texts whose ids are kept while a table is made


@dataclass(frozen=True)
class Rows:
    """The columns of a split that training reads, texts in the form that models read and write."""

    source: list[str]
    target: list[str]
    signature: list[str]  # of the target
    source_signature: list[str]
    corpus: list[str]

    def first(self, number: int | None) -> "Rows":
        """The first `number` rows; all of them for None."""
        return Rows(*(getattr(self, field.name)[:number] for field in fields(self)))

    def reversed(self) -> "Rows":
        """The same pairs, read the other way."""
        return Rows(self.target, self.source, self.source_signature, self.signature, self.corpus)


def read_rows(corpus: Path, relation: str, split: str) -> Rows:
    """Every row of a split's shards, in order."""
    parquet = require("pyarrow.parquet", "corpus")
    rows = Rows([], [], [], [], [])
    for shard in sorted((corpus / relation).glob(f"{split}-*.parquet")):
        table = parquet.read_table(shard, columns=[field.name for field in fields(Rows)])
        for name in table.column_names:
            cells = table[name].to_pylist()
            getattr(rows, name).extend(map(for_modelling, cells) if name in ("source", "target") else cells)
    return rows


class Ragged:
    """Rows of ids of any length in a flat array."""

    def __init__(self, rows: Iterable[list[int]]) -> None:
        lengths: list[int] = []

        def flat() -> Iterator[int]:
            for row in rows:
                lengths.append(len(row))
                yield from row

        self._flat = np.fromiter(flat(), np.int32)
        self.lengths: Ids = np.array(lengths, np.int32)
        self._ends = np.cumsum(self.lengths, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> list[int]:
        end = int(self._ends[row])
        ids: list[int] = self._flat[end - int(self.lengths[row]) : end].tolist()
        return ids

    def take(self, rows: npt.NDArray[np.intp]) -> "Ragged":
        """These rows, in this order, of the same ids."""
        taken = copy(self)
        taken.lengths, taken._ends = self.lengths[rows], self._ends[rows]
        return taken


def text_keys(texts: Iterable[str]) -> Keys:
    """A number for each text; no two different texts of a corpus have the same."""
    return np.frombuffer(b"".join(blake2b(text.encode(), digest_size=8).digest() for text in texts), np.uint64)


class PairTable:
    """A relation's pairs of a split, as ids.

    The source is held twice: as the encoder reads it and as the decoder writes it (the `inverse` role). `corpora`
    gives the share of a corpus's pairs that an epoch takes, if it is not all of them; a pair with a side that
    the decoder's `positions` cannot hold behind a tag and a signature is never taken.
    """

    def __init__(
        self,
        rows: Rows,
        vocabulary: Vocabulary,
        read: Callable[[str], list[int]],
        corpora: Mapping[str, float],
        positions: int,
    ) -> None:
        encode = lru_cache(_REMEMBERED)(vocabulary.encode_text)  # sources repeat, and so do signatures
        write_bits = lru_cache(_REMEMBERED)(vocabulary.encode_signature)
        self.read = Ragged(map(lru_cache(_REMEMBERED)(read), rows.source))
        self.source = Ragged(map(encode, rows.source))
        self.target = Ragged(map(encode, rows.target))
        self.signature = Ragged(map(write_bits, rows.signature))
        self.source_signature = Ragged(map(write_bits, rows.source_signature))
        self.sources: Keys = text_keys(rows.source)
        room = positions - 1 - len(vocabulary.signature.groups)
        fits = np.maximum(self.source.lengths, self.target.lengths) <= room
        self.too_long = int(np.count_nonzero(~fits))
        self.shares = np.array([corpora.get(name, 1.0) for name in rows.corpus]) * fits

    def __len__(self) -> int:
        return len(self.target)
