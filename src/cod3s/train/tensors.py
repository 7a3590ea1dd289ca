"""Turn examples into padded tensors, batch by batch."""

from collections.abc import Sequence
from typing import Any

from cod3s.errors import require
from cod3s.model.reader import padded
from cod3s.train.batches import BatchStream
from cod3s.train.lessons import IGNORED, Example, Examples


def collate(examples: Sequence[Example], pad_read: int, pad_written: int) -> dict[str, Any]:
    """A batch as a model's forward takes it: (batch, longest) each."""
    read = [example.read for example in examples]
    return {
        **_masked(read, pad_read),
        "decoder_input_ids": _tensor([example.given for example in examples], pad_written),
        "labels": _tensor([example.labels for example in examples], IGNORED),
    }


def collate_causal(examples: Sequence[Example], pad: int) -> dict[str, Any]:
    """A batch for a language model: what is read, then what is given, in one row; labels where it writes."""
    labels = [[IGNORED] * len(example.read) + example.labels for example in examples]
    rows = [example.read + example.given for example in examples]
    return {**_masked(rows, pad), "labels": _tensor(labels, IGNORED)}


def _masked(rows: Sequence[Sequence[int]], filler: int) -> dict[str, Any]:
    mask = [[1] * len(row) for row in rows]
    return {"input_ids": _tensor(rows, filler), "attention_mask": _tensor(mask, 0)}


def _tensor(rows: Sequence[Sequence[int]], filler: int) -> Any:
    return require("torch", "train").tensor(padded(rows, filler))


class TensorBatches:
    """A torch dataset whose items are whole batches, so that the sampler only has to count."""

    def __init__(
        self,
        examples: Examples,
        stream: BatchStream,
        number: int,
        *,
        pad_read: int,
        pad_written: int,
        causal: bool = False,
    ) -> None:
        self._examples, self._stream, self._number = examples, stream, number
        self._pads, self._causal = (pad_read, pad_written), causal

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, number: int) -> dict[str, Any]:
        if number >= self._number:
            raise IndexError(number)
        examples = [self._examples[row] for row in self._stream[number]]
        return collate_causal(examples, self._pads[1]) if self._causal else collate(examples, *self._pads)


def padding_share(batches: TensorBatches, number: int, pad_written: int) -> float:
    """The share of decoder and encoder positions that are padding, over the first `number` batches."""
    real = whole = 0
    for index in range(min(number, len(batches))):
        batch = batches[index]
        whole += batch["attention_mask"].numel()
        real += int(batch["attention_mask"].sum())
        if (written := batch.get("decoder_input_ids")) is not None:
            whole += written.numel()
            real += int((written != pad_written).sum())
    return 1 - real / whole if whole else 0.0
