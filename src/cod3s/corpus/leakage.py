"""Find sentences that occur both in train and in held-out pairs, compared by their letters and digits."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cod3s.corpus.sql import table_of
from cod3s.io.locations import Location

Hashes = npt.NDArray[np.uint64]


class Leaks:
    """Held-out sentences, by hash, and which of them occur in train."""

    def __init__(self, hashes: Sequence[Hashes]) -> None:
        end = np.array([np.iinfo(np.uint64).max], np.uint64)  # so that every search ends at an element
        self._known = np.unique(np.concatenate([end, *hashes]))
        self._met = np.zeros(len(self._known), bool)

    def watched(self, train: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same batches, while their sentences are remembered."""
        for batch in train:
            index, known = self._find(batch)
            self._met[index[known]] = True
            yield batch

    def in_train(self, held_out: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which rows have a sentence that occurs in train; complete once all of train was watched."""
        index, known = self._find(held_out)
        leaked = known & self._met[index]  # (rows, source and target)
        return leaked[:, 0] | leaked[:, 1]

    def _find(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
        hashes = np.stack([batch["source_hash"].to_numpy(), batch["target_hash"].to_numpy()], axis=1)
        index = np.searchsorted(self._known, hashes)
        return index, self._known[index] == hashes


def count_shared(connection: Any, train: list[Location], held_out: list[Location]) -> int:
    """How many sentences occur both in train and in held-out shards, counted on the text on disk."""
    if not train or not held_out:
        return 0
    sides = "SELECT text_hash(source) AS hash FROM {0} UNION ALL SELECT text_hash(target) FROM {0}"
    kept = sides.format(table_of(connection, "held_out", held_out))
    seen = sides.format(table_of(connection, "train", train))
    query = f"SELECT count(DISTINCT hash) FROM ({seen}) WHERE hash IN (SELECT hash FROM ({kept}))"
    return int(connection.sql(query).fetchall()[0][0])
