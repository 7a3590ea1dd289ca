"""Turn lessons into batches: each is read as one sequence, in which the common start of its rows appears once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from cod3s.critic.answer_lessons import Lesson
from cod3s.critic.refine_config import RefineConfig
from cod3s.errors import require
from cod3s.model.reader import padded
from cod3s.train.batches import BatchStream, TensorBatches


def lesson_batches(lessons: Sequence[Lesson], pad: int, config: RefineConfig) -> TensorBatches:
    """The lessons as tensors, batch by batch.

    A batch has `input_ids`, `position_ids` and `branches` (lessons, longest). For each row, it has the number of
    its lesson (`sequences`), its `tokens`, their `places` in the sequence, which of them are its `text` and its
    `signature` (rows, widest), where its last token is (`lasts`), the number of the row that it is compared with
    (`rivals`), and its verdict. A row without a verdict has -1, and one with a verdict teaches no text.
    """
    packed = [_pack([row.tokens for row in lesson]) for lesson in lessons]
    lengths = np.array([(0, len(sequence.tokens)) for sequence in packed])
    stream = BatchStream(lengths, np.ones(len(lengths)), config.batch_tokens, config.seed)

    def collate(numbers: Sequence[int]) -> dict[str, Any]:
        tensor = require("torch", "train").tensor
        chosen = [packed[number] for number in numbers]
        rows = [row for number in numbers for row in lessons[number]]
        text, signature, rivals = [], [], list[int]()
        for row in rows:
            written = len(row.tokens) - row.text_start
            text.append([0] * row.text_start + [int(row.verdict is None)] * written)
            forced = row.text_start - row.signature_start
            signature.append([0] * row.signature_start + [1] * forced + [0] * written)
        for number in numbers:
            first = len(rivals)
            rivals += [first + (n if row.rival is None else row.rival) for n, row in enumerate(lessons[number])]
        return {
            "input_ids": tensor(padded([sequence.tokens for sequence in chosen], pad)),
            "position_ids": tensor(padded([sequence.positions for sequence in chosen], 0)),
            "branches": tensor(padded([sequence.branches for sequence in chosen], -1)),
            "sequences": tensor([number for number, sequence in enumerate(chosen) for _ in sequence.places]),
            "places": tensor(padded([places for sequence in chosen for places in sequence.places], 0)),
            "tokens": tensor(padded([row.tokens for row in rows], 0)),
            "text": tensor(padded(text, 0)),
            "signature": tensor(padded(signature, 0)),
            "rivals": tensor(rivals),
            "verdicts": tensor([-1.0 if row.verdict is None else row.verdict for row in rows]),
            "lasts": tensor([len(row.tokens) - 1 for row in rows]),
        }

    return TensorBatches(stream, config.epochs, collate)


def read_sequences(model: Any, batch: Mapping[str, Any]) -> Any:
    """The logits of a Llama model of transformers for the sequences of a batch, computed in bfloat16."""
    torch = require("torch", "train")
    tokens = batch["input_ids"]
    with torch.autocast(tokens.device.type, torch.bfloat16):
        mask = _visible(batch["branches"])
        return model(input_ids=tokens, position_ids=batch["position_ids"], attention_mask=mask).logits


def _visible(branches: Any) -> Any:
    """(lessons, 1, longest, longest): what is added to attention, so that a row sees itself and what is shared."""
    torch = require("torch", "train")
    longest = branches.shape[1]
    before = torch.ones(longest, longest, dtype=torch.bool, device=branches.device).tril()
    same = branches[:, :, None] == branches[:, None, :]
    seen = ((same | (branches == 0)[:, None, :]) & before)[:, None]
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


def _pack(rows: Sequence[list[int]]) -> _Packed:
    shared = len(list(takewhile(lambda column: len(set(column)) == 1, zip(*rows, strict=False))))
    tokens, positions, branches = rows[0][:shared], list(range(shared)), [0] * shared
    places = []
    for branch, row in enumerate(rows, start=1):
        rest = row[shared:]
        places.append([*range(shared), *range(len(tokens), len(tokens) + len(rest))])
        tokens += rest
        positions += range(shared, len(row))
        branches += [branch] * len(rest)
    return _Packed(tokens, positions, branches, places)
