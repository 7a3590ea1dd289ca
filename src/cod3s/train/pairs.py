"""The pairs of a corpus as token ids, held compactly: a few dozen bytes a pair. Shards in, ids out."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cod3s.errors import require
from cod3s.text import for_modelling
from cod3s.tokens import Vocabulary

Ids = npt.NDArray[np.int32]


class Ragged:
    """Rows of ids of any length in one flat array."""

    def __init__(self, rows: Iterable[list[int]]) -> None:
        lengths: list[int] = []

        def flat() -> Iterator[int]:
            for row in rows:
                lengths.append(len(row))
                yield from row

        self._flat = np.fromiter(flat(), np.int32)
        self._ends = np.cumsum(np.array(lengths, np.int64))
        self.lengths: Ids = np.array(lengths, np.int32)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> list[int]:
        end = int(self._ends[row])
        found: list[int] = self._flat[end - int(self.lengths[row]) : end].tolist()
        return found


class PairTable:
    """One relation's pairs of one split.

    The source is held twice: as the encoder reads it and as the decoder writes it (the `inverse` role).
    """

    def __init__(
        self,
        relation: str,
        rows: list[tuple[str, str, str]],
        vocabulary: Vocabulary,
        read: Callable[[str], list[int]],
    ) -> None:
        self.relation = relation
        self.read = Ragged(read(source) for source, _, _ in rows)
        self.source = Ragged(vocabulary.encode_text(source) for source, _, _ in rows)
        self.target = Ragged(vocabulary.encode_text(target) for _, target, _ in rows)
        self.signature = Ragged(vocabulary.encode_signature(signature) for _, _, signature in rows)

    def __len__(self) -> int:
        return len(self.target)


def read_rows(corpus: Path, relation: str, split: str) -> list[tuple[str, str, str]]:
    """(source, target, signature) of every shard of the split, texts in the form that models read and write."""
    parquet = require("pyarrow.parquet", "corpus")
    rows: list[tuple[str, str, str]] = []
    for shard in sorted((corpus / relation).glob(f"{split}-*.parquet")):
        table = parquet.read_table(shard, columns=["source", "target", "signature"])
        columns = (table[name].to_pylist() for name in ("source", "target", "signature"))
        rows += [
            (for_modelling(source), for_modelling(target), bits)
            for source, target, bits in zip(*columns, strict=True)
        ]
    return rows
