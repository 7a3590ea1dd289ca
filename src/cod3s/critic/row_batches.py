"""Batches of token rows, for a model that learns from answers and verdicts.

Rows that begin alike, such as the answers to one source, are read as one sequence, in which the beginning stands
once.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from cod3s.critic.refine_config import RefineConfig
from cod3s.errors import require
from cod3s.train.batches import BatchStream

TokenRow = list[int]


class RowBatches:
    """A torch dataset whose items are whole batches; `extra` gives what else belongs to the groups of a batch.

    A batch has `input_ids`, `position_ids` and `branches` (groups, longest), and for each row the number of its
    group (`sequences`), its `tokens`, and their `places` in the sequence (rows, widest).
    """

    def __init__(
        self,
        groups: Sequence[Sequence[TokenRow]],
        extra: Callable[[Sequence[int]], dict[str, Any]],
        pad: int,
        config: RefineConfig,
    ) -> None:
        self._groups, self._extra, self._pad = groups, extra, pad
        self._packed = [_pack(rows) for rows in groups]
        lengths = np.array([(0, len(packed.tokens)) for packed in self._packed])
        self._stream = BatchStream(lengths, np.ones(len(lengths)), config.batch_tokens, config.seed)
        self.per_epoch = self._stream.batches_per_epoch()
        self._number = self.per_epoch * config.epochs

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, number: int) -> dict[str, Any]:
        if number >= self._number:
            raise IndexError(number)
        torch = require("torch", "train")
        numbers = self._stream[number]
        chosen = [self._packed[number] for number in numbers]
        rows = [row for number in numbers for row in self._groups[number]]
        return {
            "input_ids": torch.tensor(filled([packed.tokens for packed in chosen], self._pad)),
            "position_ids": torch.tensor(filled([packed.positions for packed in chosen])),
            "branches": torch.tensor(filled([packed.branches for packed in chosen], -1)),
            "sequences": torch.tensor([at for at, packed in enumerate(chosen) for _ in packed.places]),
            "places": torch.tensor(filled([places for packed in chosen for places in packed.places])),
            "tokens": torch.tensor(filled(rows)),
            **self._extra(numbers),
        }


def filled(rows: Sequence[Sequence[int]], filling: int = 0) -> list[list[int]]:
    """The rows, all as long as the longest."""
    longest = max(map(len, rows))
    return [[*row, *[filling] * (longest - len(row))] for row in rows]


def read_sequences(model: Any, batch: Mapping[str, Any]) -> Any:
    """What a Llama model of transformers gives for the sequences of a batch, computed in bfloat16."""
    torch = require("torch", "train")
    tokens = batch["input_ids"]
    with torch.autocast(tokens.device.type, torch.bfloat16):
        return model(
            input_ids=tokens, position_ids=batch["position_ids"], attention_mask=_visible(batch["branches"])
        )


def outputs_of(model: Any, batches: RowBatches) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each batch of an epoch, with what the model gives for it while it is not learning."""
    torch = require("torch", "train")
    was_training = model.training
    model.eval()
    with torch.no_grad():
        rows = [(batch, model(**batch)) for batch in map(batches.__getitem__, range(batches.per_epoch))]
    model.train(was_training)
    return rows


def _visible(branches: Any) -> Any:
    """(groups, 1, longest, longest): what is added to attention, so that a row sees itself and what is shared."""
    torch = require("torch", "train")
    longest = branches.shape[1]
    before = torch.ones(longest, longest, dtype=torch.bool, device=branches.device).tril()
    own = branches[:, :, None] == branches[:, None, :]
    seen = ((own | (branches == 0)[:, None, :]) & before)[:, None]
    return torch.zeros(seen.shape, device=branches.device).masked_fill(~seen, torch.finfo(torch.float32).min)


@dataclass(frozen=True)
class _Packed:
    """Rows as one sequence: what all of them begin with (branch 0), then the rest of each row (its own branch).

    `places` says where each token of each row is.
    """

    tokens: list[int]
    positions: list[int]
    branches: list[int]
    places: list[list[int]]


def _pack(rows: Sequence[TokenRow]) -> _Packed:
    shared = len(list(takewhile(lambda column: len(set(column)) == 1, zip(*rows, strict=False))))
    tokens, positions, branches = rows[0][:shared], list(range(shared)), [0] * shared
    places = []
    for branch, row in enumerate(rows, start=1):
        own = row[shared:]
        places.append([*range(shared), *range(len(tokens), len(tokens) + len(own))])
        tokens += own
        positions += range(shared, len(row))
        branches += [branch] * len(own)
    return _Packed(tokens, positions, branches, places)
