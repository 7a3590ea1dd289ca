"""Examples → padded tensors, one batch at a time."""

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


class TensorBatches:
    """A torch dataset whose items are whole batches, so that the sampler only has to count."""

    def __init__(
        self, examples: Examples, stream: BatchStream, number: int, *, pad_read: int, pad_written: int
    ) -> None:
        self._examples, self._stream, self._number = examples, stream, number
        self._pads = pad_read, pad_written

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, number: int) -> dict[str, Any]:
        if number >= self._number:
            raise IndexError(number)
        return collate([self._examples[place] for place in self._stream[number]], *self._pads)


def padding_share(batches: TensorBatches, number: int, pad_written: int) -> float:
    """The share of decoder and encoder positions that are padding, over the first `number` batches."""
    real = whole = 0
    for place in range(min(number, len(batches))):
        batch = batches[place]
        whole += batch["attention_mask"].numel() + batch["decoder_input_ids"].numel()
        real += int(batch["attention_mask"].sum()) + int((batch["decoder_input_ids"] != pad_written).sum())
    return 1 - real / whole if whole else 0.0
