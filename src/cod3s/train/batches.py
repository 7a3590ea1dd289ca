"""Make batches of similar length, in an order that depends only on the seed.

Batch i is always the same, so a resumed run equals an uninterrupted run, and several processes can share the work.
"""

import numpy as np
import numpy.typing as npt


class BatchStream:
    """An endless series of batches; `self[i]` is the list of example numbers of batch i.

    Each epoch draws its share of the examples and shuffles them, sorts stretches of them by length, and shuffles
    the batches.
    """

    _STRETCH = 65_536  # examples sorted together: enough for a batch to have similar lengths on both sides

    def __init__(
        self, lengths: npt.NDArray[np.int64], shares: npt.NDArray[np.float64], max_tokens: int, seed: int
    ) -> None:
        self._lengths, self._shares = lengths, shares
        self._max_tokens, self._seed = max_tokens, seed
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
        order = draw.permutation(np.flatnonzero(draw.random(len(self._lengths)) < self._shares))
        batches: list[list[int]] = []
        for start in range(0, len(order), self._STRETCH):
            stretch = order[start : start + self._STRETCH]
            batches += [stretch[batch].tolist() for batch in self._like_batches(self._lengths[stretch])]
        return [batches[number] for number in draw.permutation(len(batches))]

    def _like_batches(self, lengths: npt.NDArray[np.int64]) -> list[list[int]]:
        """Rows with similar lengths on both sides, each batch at most `max_tokens` when padded (or a single row).

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
