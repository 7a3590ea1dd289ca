"""Turn examples into padded tensors, batch by batch."""

from collections.abc import Sequence
from typing import Any

from cod3s.errors import require
from cod3s.train.batches import BatchStream
from cod3s.train.lessons import IGNORED, Example, Examples


def collate(examples: Sequence[Example], pad_read: int, pad_written: int) -> dict[str, Any]:
    """A batch as a model's forward takes it: (batch, longest) each."""
    torch = require("torch", "train")

    def padded(rows: list[list[int]], filler: int) -> Any:
        longest = max(map(len, rows))
        return torch.tensor([row + [filler] * (longest - len(row)) for row in rows])

    read = [example.read for example in examples]
    return {
        "input_ids": padded(read, pad_read),
        "attention_mask": padded([[1] * len(row) for row in read], 0),
        "decoder_input_ids": padded([example.given for example in examples], pad_written),
        "labels": padded([example.labels for example in examples], IGNORED),
    }


def collate_causal(examples: Sequence[Example], pad: int) -> dict[str, Any]:
    """A batch for a language model: what is read, then what is given, in one row; labels where it writes."""
    torch = require("torch", "train")
    rows = [example.read + example.given for example in examples]
    longest = max(map(len, rows))

    def padded(ids: list[int], filler: int) -> list[int]:
        return ids + [filler] * (longest - len(ids))

    labels = [[IGNORED] * len(example.read) + example.labels for example in examples]
    return {
        "input_ids": torch.tensor([padded(row, pad) for row in rows]),
        "attention_mask": torch.tensor([padded([1] * len(row), 0) for row in rows]),
        "labels": torch.tensor([padded(row, IGNORED) for row in labels]),
    }


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
