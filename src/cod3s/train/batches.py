"""Make batches in an order that depends only on the seed, and turn them into tensors.

Batch i is always the same, so a resumed run equals an uninterrupted run, and several processes can share the work.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.errors import require
from cod3s.model.causal import IGNORED
from cod3s.model.reader import Reader, padded
from cod3s.model.shape import SHAPES
from cod3s.train.config import TrainConfig
from cod3s.train.packing import pack_rows, packed_tensors
from cod3s.train.tasks import Example, Examples

Numbers = npt.NDArray[np.intp]
_MEASURED = 100  # batches whose padding is counted


class BatchStream:
    """An endless series of batches of examples; batch i is `self[i]`.

    Each epoch draws its share of the examples, `make` puts them into batches, and these are shuffled.
    """

    def __init__(
        self,
        shares: npt.NDArray[np.float64],
        make: Callable[[Numbers, np.random.Generator], list[Any]],
        seed: int,
    ) -> None:
        self._shares, self._make, self._seed = shares, make, seed
        self._epoch = -1
        self._start = 0
        self._batches: list[Any] = []

    def __getitem__(self, number: int) -> Any:
        if number < self._start:
            self._epoch, self._start, self._batches = -1, 0, []
        while number >= self._start + len(self._batches):
            self._start += len(self._batches)
            self._epoch += 1
            self._batches = self._draw(self._epoch)
        return self._batches[number - self._start]

    def batches_per_epoch(self) -> int:
        """Of the first epoch; later ones differ by a few."""
        if self._epoch != 0:
            self._epoch, self._start, self._batches = 0, 0, self._draw(0)
        return len(self._batches)

    def _draw(self, epoch: int) -> list[Any]:
        draw = np.random.default_rng([self._seed, epoch])
        drawn = draw.permutation(np.flatnonzero(draw.random(len(self._shares)) < self._shares))
        batches = self._make(drawn, draw)
        return [batches[number] for number in draw.permutation(len(batches))]


_STRETCH = 65_536  # examples sorted together: enough for a batch to have similar lengths on both sides


def batches_of_like(lengths: npt.NDArray[np.int64], drawn: Numbers, max_tokens: int) -> list[list[int]]:
    """Examples with similar lengths on both sides, each batch at most `max_tokens` when padded (or one example).

    Sorted by what is written, then by what is read: up and down in turn, so that neighbors stay alike.
    """
    batches: list[list[int]] = []
    for start in range(0, len(drawn), _STRETCH):
        stretch = drawn[start : start + _STRETCH]
        read, written = lengths[stretch].T
        batch: list[int] = []
        longest = np.zeros(2, np.int64)
        for number in stretch[np.lexsort((np.where(written % 2, read, -read), written))].tolist():
            grown = np.maximum(longest, lengths[number])
            if batch and (len(batch) + 1) * int(grown.sum()) > max_tokens:
                batches.append(batch)
                batch, grown = [], lengths[number]
            batch.append(number)
            longest = grown
        batches += [batch] if batch else []
    return batches


class TensorBatches:
    """A torch dataset whose items are whole batches, in the order in which they are taught.

    `collate` turns a batch of the stream into its tensors.
    """

    def __init__(self, stream: BatchStream, epochs: int, collate: Callable[[Any], dict[str, Any]]) -> None:
        self._stream, self._collate = stream, collate
        self.per_epoch = stream.batches_per_epoch()
        self._number = self.per_epoch * epochs

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, number: int) -> dict[str, Any]:
        if number >= self._number:
            raise IndexError(number)
        return self._collate(self._stream[number])

    def padding_share(self) -> float:
        """The share of positions that are padding, in the first batches."""
        real = whole = 0
        for number in range(min(_MEASURED, len(self))):
            batch = self[number]
            for name, empty in (("attention_mask", 0), ("decoder_attention_mask", 0), ("visits", -1)):
                if name in batch:
                    whole += batch[name].numel()
                    real += int((batch[name] != empty).sum())
        return 1 - real / whole


def example_batches(
    examples: Examples, config: TrainConfig, epochs: int, *, reader: Reader, pad: int
) -> TensorBatches:
    """The examples as the forward of the config's models takes them; `pad` fills up what is written."""
    if SHAPES[config.shape].causal:
        rows = max(1, config.batch_tokens // config.row_tokens)

        def pack(drawn: Numbers, draw: np.random.Generator) -> list[Any]:
            packed = pack_rows(examples, drawn, config.row_tokens, draw)
            return [packed[start : start + rows] for start in range(0, len(packed), rows)]

        return TensorBatches(
            BatchStream(examples.shares, pack, config.seed),
            epochs,
            lambda batch: packed_tensors(examples, batch, config.row_tokens, pad),
        )
    return TensorBatches(
        BatchStream(
            examples.shares,
            lambda drawn, _: batches_of_like(examples.lengths, drawn, config.batch_tokens),
            config.seed,
        ),
        epochs,
        lambda batch: _padded_tensors([examples[number] for number in batch], reader.pad, pad),
    )


def _padded_tensors(examples: Sequence[Example], pad_read: int, pad_written: int) -> dict[str, Any]:
    """What encoder and decoder read, each filled up to the longest."""
    return {
        "input_ids": _tensor([example.read for example in examples], pad_read),
        "attention_mask": _tensor([[1] * len(example.read) for example in examples], 0),
        "decoder_input_ids": _tensor([example.given for example in examples], pad_written),
        "decoder_attention_mask": _tensor([[1] * len(example.given) for example in examples], 0),
        "labels": _tensor([example.labels for example in examples], IGNORED),
    }


def _tensor(rows: Sequence[Sequence[int]], filler: int) -> Any:
    return require("torch", "train").tensor(padded(rows, filler))  # (rows, longest)
