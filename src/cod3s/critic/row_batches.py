"""Batches of token rows, for the models that learn from verdicts."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cod3s.critic.tune_config import RefineConfig, TuneConfig
from cod3s.errors import require
from cod3s.train.batches import BatchStream


class RowBatches:
    """A torch dataset whose items are whole batches; `collate` makes one of the numbers of its rows.

    `lengths` (rows, 2) are the tokens of each row, in up to two parts.
    """

    def __init__(
        self,
        lengths: Sequence[tuple[int, int]],
        collate: Callable[[Sequence[int]], dict[str, Any]],
        config: TuneConfig | RefineConfig,
    ) -> None:
        self._collate = collate
        self._stream = BatchStream(np.array(lengths), np.ones(len(lengths)), config.batch_tokens, config.seed)
        self.per_epoch = self._stream.batches_per_epoch()
        self._number = self.per_epoch * config.epochs

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, number: int) -> dict[str, Any]:
        if number >= self._number:
            raise IndexError(number)
        return self._collate(self._stream[number])


def padded(rows: Sequence[Sequence[int]], pad: int) -> dict[str, Any]:
    """The rows as a model reads them: (rows, longest) each."""
    torch = require("torch", "train")
    longest = max(map(len, rows))
    return {
        "input_ids": torch.tensor([[*row, *[pad] * (longest - len(row))] for row in rows]),
        "attention_mask": torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows]),
    }
