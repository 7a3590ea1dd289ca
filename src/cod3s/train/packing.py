"""Pack examples of a causal model into rows of the same length: a source is read once for all of its answers.

A row holds visits; a visit reads its trunk (a source and the connective) and then goes on in branches, one per
example. The positions of each branch continue those of the trunk; branches and visits do not see each other.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cod3s.errors import require
from cod3s.model.causal import IGNORED
from cod3s.train.tasks import Examples

Visit = list[int]
"""The numbers of examples that read the same trunk."""
PackedRow = list[Visit]
_OPEN_ROWS = 64  # where first-fit looks for room


def pack_rows(
    examples: Examples, drawn: npt.NDArray[np.intp], row_tokens: int, draw: np.random.Generator
) -> list[PackedRow]:
    """The drawn examples in rows of at most `row_tokens`, by first-fit; visits come in random order."""
    rows: list[PackedRow] = []
    row_of: list[PackedRow] = []  # rows that may have room
    room: list[int] = []
    for visit, tokens in _visits(examples, drawn, row_tokens, draw):
        number = next((number for number, left in enumerate(room) if tokens <= left), -1)
        if number < 0:
            if len(room) == _OPEN_ROWS:
                fullest = room.index(min(room))
                rows.append(row_of.pop(fullest))
                room.pop(fullest)
            number = len(room)
            room.append(row_tokens)
            row_of.append([])
        row_of[number].append(visit)
        room[number] -= tokens
    rows += row_of
    return [rows[number] for number in draw.permutation(len(rows))]


def _visits(
    examples: Examples, drawn: npt.NDArray[np.intp], row_tokens: int, draw: np.random.Generator
) -> Iterator[tuple[Visit, int]]:
    """Examples with the same trunk together, up to half a row (more would leave gaps), and their tokens."""
    trunks = examples.trunks[drawn]
    _, groups = np.unique(trunks, return_inverse=True)
    places = draw.permutation(int(groups.max(initial=-1)) + 1)[groups]
    order = np.argsort(places, kind="stable")  # the examples of a trunk stay in the random order of `drawn`
    read, written = examples.lengths[drawn[order]].T.tolist()
    visit: Visit = []
    tokens, trunk = 0, -1
    for number, place, to_read, to_write in zip(
        drawn[order].tolist(), places[order].tolist(), read, written, strict=True
    ):
        if visit and (place != trunk or tokens + to_write > row_tokens // 2):
            yield visit, tokens
            visit = []
        if not visit:
            tokens, trunk = to_read, place
        visit.append(number)
        tokens += to_write
    if visit:
        yield visit, tokens


def packed_tensors(examples: Examples, rows: Sequence[PackedRow], row_tokens: int, pad: int) -> dict[str, Any]:
    """What the forward of `cod3s.model.causal` takes: tensors of (rows, row_tokens)."""
    shape = (len(rows), row_tokens)
    ids, positions = np.full(shape, pad), np.zeros(shape, np.int64)
    visits, branches = np.full(shape, -1), np.zeros(shape, np.int64)
    labels, plausible = np.full(shape, IGNORED), np.full(shape, -1.0, np.float32)
    for row, packed in enumerate(rows):
        end = 0
        for visit, numbers in enumerate(packed):
            batch = [examples[number] for number in numbers]
            trunk = batch[0].read
            parts = [(trunk, [IGNORED] * len(trunk)), *((example.given, example.labels) for example in batch)]
            for branch, (tokens, taught) in enumerate(parts):
                start, end = end, end + len(tokens)
                first = len(trunk) if branch else 0
                ids[row, start:end], labels[row, start:end] = tokens, taught
                positions[row, start:end] = np.arange(first, first + len(tokens))
                visits[row, start:end], branches[row, start:end] = visit, branch
                if branch and (judged := batch[branch - 1].plausible) is not None:
                    plausible[row, end - 1] = judged
    torch = require("torch", "train")
    arrays = {"input_ids": ids, "positions": positions, "visits": visits, "branches": branches, "labels": labels}
    return {name: torch.from_numpy(array) for name, array in {**arrays, "plausible": plausible}.items()}
