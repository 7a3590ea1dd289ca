"""Make batches of similar length, in an order that depends only on the seed, and turn them into padded tensors.

Batch i is always the same, so a resumed run equals an uninterrupted run, and several processes can share the work.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.errors import require
from cod3s.model.reader import Reader, padded
from cod3s.model.shape import SHAPES
from cod3s.train.config import TrainConfig
from cod3s.train.lessons import IGNORED, Example, Examples

_MEASURED = 100  # batches whose padding is counted


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


class TensorBatches:
    """A torch dataset whose items are whole batches, in the order in which they are taught.

    `collate` turns the numbers of a batch's examples into its tensors.
    """

    def __init__(
        self, stream: BatchStream, epochs: int, collate: Callable[[Sequence[int]], dict[str, Any]]
    ) -> None:
        self._stream, self._collate = stream, collate
        self.per_epoch = stream.batches_per_epoch()
        self._number = self.per_epoch * epochs

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, number: int) -> dict[str, Any]:
        if number >= self._number:
            raise IndexError(number)
        return self._collate(self._stream[number])


def example_batches(
    examples: Examples, config: TrainConfig, epochs: int, *, reader: Reader, pad: int
) -> TensorBatches:
    """The examples as the forward of the config's models takes them; `pad` fills up what is written."""
    causal = SHAPES[config.shape].causal

    def collate(numbers: Sequence[int]) -> dict[str, Any]:
        batch = [examples[number] for number in numbers]
        return _causal_tensors(batch, pad) if causal else _seq2seq_tensors(batch, reader.pad, pad)

    stream = BatchStream(examples.lengths, examples.shares, config.batch_tokens, config.seed)
    return TensorBatches(stream, epochs, collate)


def _seq2seq_tensors(examples: Sequence[Example], pad_read: int, pad_written: int) -> dict[str, Any]:
    return {
        **_masked([example.read for example in examples], pad_read),
        "decoder_input_ids": _tensor([example.given for example in examples], pad_written),
        "labels": _tensor([example.labels for example in examples], IGNORED),
    }


def _causal_tensors(examples: Sequence[Example], pad: int) -> dict[str, Any]:
    """What is read, then what is given, in one row; labels where the model writes."""
    labels = [[IGNORED] * len(example.read) + example.labels for example in examples]
    rows = [example.read + example.given for example in examples]
    return {**_masked(rows, pad), "labels": _tensor(labels, IGNORED)}


def _masked(rows: Sequence[Sequence[int]], filler: int) -> dict[str, Any]:
    mask = [[1] * len(row) for row in rows]
    return {"input_ids": _tensor(rows, filler), "attention_mask": _tensor(mask, 0)}


def _tensor(rows: Sequence[Sequence[int]], filler: int) -> Any:
    return require("torch", "train").tensor(padded(rows, filler))  # (rows, longest)


def padding_share(batches: TensorBatches, pad_written: int) -> float:
    """The share of encoder and decoder positions that are padding, in the first batches."""
    real = whole = 0
    for index in range(min(_MEASURED, len(batches))):
        batch = batches[index]
        whole += batch["attention_mask"].numel()
        real += int(batch["attention_mask"].sum())
        if (written := batch.get("decoder_input_ids")) is not None:
            whole += written.numel()
            real += int((written != pad_written).sum())
    return 1 - real / whole
