"""Batches of like length, in an order that the seed and the step alone decide.

Batch number i is the same whoever asks and whenever: that is what makes a resumed run equal an unbroken one, and
lets several processes each take their share.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.model.roles import tag
from cod3s.tokens import Vocabulary
from cod3s.train.pairs import PairTable

IGNORED = -100  # a label that torch's loss leaves out


@dataclass(frozen=True)
class Example:
    """What the encoder reads, what the decoder is given, and what it learns to write (`IGNORED` where nothing)."""

    read: list[int]
    given: list[int]
    labels: list[int]


class Examples:
    """Every pair in every role: example number i is pair i // roles in role i % roles, table after table."""

    def __init__(
        self, tables: Sequence[PairTable], roles: Sequence[str], vocabulary: Vocabulary, nothing: list[int]
    ) -> None:
        self._tables, self._roles, self._words = list(tables), list(roles), vocabulary
        self._nothing = nothing  # what the encoder reads for an empty source
        self._starts = np.cumsum([0, *(len(table) * len(roles) for table in tables)])
        self.lengths = np.concatenate([self._table_lengths(table) for table in tables])

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, number: int) -> Example:
        place = int(np.searchsorted(self._starts, number, side="right")) - 1
        table = self._tables[place]
        row, role = divmod(number - int(self._starts[place]), len(self._roles))
        start = [self._words.id(tag(table.relation, self._roles[role]))]
        match self._roles[role]:
            case "plain":
                return self._example(table.read[row], start, table.target[row])
            case "signature":
                return self._example(table.read[row], start, table.signature[row])
            case "sentence":
                return self._example(table.read[row], start, table.signature[row] + table.target[row])
        return self._example(self._nothing, start + table.signature[row], table.source[row])

    def _example(self, read: list[int], given: list[int], written: list[int]) -> Example:
        """The decoder reads `given` and `written`, and learns each written token and the end from those before."""
        labels = [IGNORED] * (len(given) - 1) + written + [self._words.end]
        return Example(read, given + written, labels)

    def _table_lengths(self, table: PairTable) -> npt.NDArray[np.int64]:
        """Tokens read and tokens written of each example, in its order: (examples, 2)."""
        signature = table.signature.lengths
        nothing = np.full(len(table), len(self._nothing))
        by_role = {
            "plain": (table.read.lengths, table.target.lengths),
            "signature": (table.read.lengths, signature),
            "sentence": (table.read.lengths, signature + table.target.lengths),
            "inverse": (nothing, signature + table.source.lengths),
        }
        lengths = np.stack([np.stack(by_role[role], axis=1) for role in self._roles], axis=1)  # (pairs, roles, 2)
        flat: npt.NDArray[np.int64] = lengths.reshape(-1, 2).astype(np.int64)
        flat[:, 1] += 1  # the tag
        return flat


class BatchStream:
    """An endless row of batches: each epoch shuffles the examples, sorts stretches of them by length and shuffles
    the batches. `self[i]` is the list of example numbers of batch i.
    """

    _STRETCH = 65_536  # examples sorted together: enough that a batch holds like lengths on both sides

    def __init__(self, lengths: npt.NDArray[np.int64], max_tokens: int, seed: int) -> None:
        self._lengths, self._max_tokens, self._seed = lengths, max_tokens, seed
        self._epoch = -1
        self._start = 0
        self._batches: list[list[int]] = []

    def __getitem__(self, number: int) -> list[int]:
        if number < self._start:
            self._epoch, self._start, self._batches = -1, 0, []
        while number >= self._start + len(self._batches):
            self._start += len(self._batches)
            self._epoch += 1
            self._batches = self._make(self._epoch)
        return self._batches[number - self._start]

    def batches_per_epoch(self) -> int:
        """Of the first epoch; later ones differ by a few."""
        return len(self._make(0))

    def _make(self, epoch: int) -> list[list[int]]:
        draw = np.random.default_rng([self._seed, epoch])
        order = draw.permutation(len(self._lengths))
        batches: list[list[int]] = []
        for start in range(0, len(order), self._STRETCH):
            stretch = order[start : start + self._STRETCH]
            batches += [stretch[batch].tolist() for batch in self._like_batches(self._lengths[stretch])]
        return [batches[number] for number in draw.permutation(len(batches))]

    def _like_batches(self, lengths: npt.NDArray[np.int64]) -> list[list[int]]:
        """Rows with like lengths on both sides, each batch at most `max_tokens` when padded (or one row).

        Sorted by what is written, then by what is read: up and down in turn, so that neighbours stay alike.
        """
        read, written = lengths.T
        upward = np.where(written % 2, read, -read)
        batches: list[list[int]] = []
        batch: list[int] = []
        longest = np.zeros(2, np.int64)
        for row in np.lexsort((upward, written)).tolist():
            grown = np.maximum(longest, lengths[row])
            if batch and (len(batch) + 1) * int(grown.sum()) > self._max_tokens:
                batches.append(batch)
                batch, grown = [], lengths[row]
            batch.append(row)
            longest = grown
        return [*batches, batch] if batch else batches
