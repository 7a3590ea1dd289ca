"""Turn examples into padded tensors, batch by batch."""

from collections.abc import Callable, Sequence
from typing import Any

from cod3s.errors import require
from cod3s.model.reader import Reader, padded
from cod3s.model.shape import SHAPES
from cod3s.train.batches import BatchStream
from cod3s.train.config import TrainConfig
from cod3s.train.lessons import IGNORED, Example, Examples

_MEASURED = 100  # batches whose padding is counted


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
