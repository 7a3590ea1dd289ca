"""Lessons: a source with good answers, and with rejected ones to compare them with, as tokens that a model reads.

Most answers come after their own signatures, so that the model also learns to follow signatures. The rows of a
lesson are read as one sequence in which their common beginning, the source, stands only once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np

from cod3s.critic.examples import LabelledPair
from cod3s.critic.row_batches import RowBatches
from cod3s.critic.tune_config import RefineConfig
from cod3s.decode.models import BundleModels, RoleModel
from cod3s.errors import Cod3sError, require
from cod3s.model.causal_engine import CausalEngine
from cod3s.signatures.signer import Signer
from cod3s.text import for_modelling


@dataclass(frozen=True)
class Row:
    """The tokens of an answer after its source.

    `rival` is the number of the accepted row that a rejected one is compared with.
    """

    tokens: list[int]
    signature_start: int
    text_start: int
    rival: int | None = None


Lesson = list[Row]
"""All rows begin with the same source."""


def make_lessons(
    examples: Sequence[LabelledPair],
    models: BundleModels,
    signer: Signer,
    config: RefineConfig,
    random: np.random.Generator,
) -> Iterator[Lesson]:
    """The good answers to each source, each followed by some rejected ones."""
    texts = list(dict.fromkeys(example.pair.target for example in examples if example.plausible))
    signatures = dict(zip(texts, signer.signatures_of(signer.vectors(texts)), strict=True)) if texts else {}
    by_question: dict[str, list[LabelledPair]] = {}
    for example in examples:
        by_question.setdefault(example.question, []).append(example)
    for answers in by_question.values():
        rejected = [example.pair.target for example in answers if not example.plausible and not example.partly]
        lesson: Lesson = []
        for pair in (example.pair for example in answers if example.plausible):
            plain = random.random() < config.plain
            role = models.plain(pair.relation) if plain else models.sentence(pair.relation)
            signature = () if plain else models.vocabulary.encode_signature(signatures[pair.target])
            accepted = len(lesson)
            lesson.append(_row(role, pair.source, signature, pair.target))
            lesson += [
                _row(role, pair.source, signature, rejected[number], accepted)
                for number in random.permutation(len(rejected))[: config.rivals].tolist()
            ]
        if lesson:
            yield lesson


def _row(role: RoleModel, source: str, signature: Sequence[int], text: str, rival: int | None = None) -> Row:
    if not isinstance(role.engine, CausalEngine):
        raise Cod3sError("only bundles of a causal language model can be refined")
    request = role.request(for_modelling(source), signature)
    start = len(role.engine.pair_row(request, ())) - 1
    tokens = role.engine.pair_row(request, role.words.encode_text(for_modelling(text)))
    return Row(tokens, start - len(signature), start, rival)


def lesson_batches(lessons: Sequence[Lesson], pad: int, config: RefineConfig) -> RowBatches:
    """The lessons as the model reads them: each is one sequence, in which its source stands only once."""
    torch = require("torch", "train")

    def collate(numbers: Sequence[int]) -> dict[str, Any]:
        chosen = [_packed(lessons[number]) for number in numbers]
        longest = max(len(packed.tokens) for packed in chosen)
        rows = [row for number in numbers for row in lessons[number]]
        width = max(len(row.tokens) for row in rows)
        firsts = np.cumsum([0, *(len(lessons[number]) for number in numbers)])
        rivals = [
            first + (place if row.rival is None else row.rival)
            for first, number in zip(firsts.tolist(), numbers, strict=False)
            for place, row in enumerate(lessons[number])
        ]

        def between(first: int, last: int) -> list[int]:
            return [int(first <= position < last) for position in range(width)]

        def filled(values: Sequence[int], length: int, filling: int = 0) -> list[int]:
            return [*values, *[filling] * (length - len(values))]

        return {
            "input_ids": torch.tensor([filled(packed.tokens, longest, pad) for packed in chosen]),
            "position_ids": torch.tensor([filled(packed.positions, longest) for packed in chosen]),
            "branches": torch.tensor([filled(packed.branches, longest, -1) for packed in chosen]),
            "lessons": torch.tensor([place for place, number in enumerate(numbers) for _ in lessons[number]]),
            "places": torch.tensor([filled(places, width) for packed in chosen for places in packed.places]),
            "tokens": torch.tensor([filled(row.tokens, width) for row in rows]),
            "text": torch.tensor([between(row.text_start, len(row.tokens)) for row in rows]),
            "signature": torch.tensor([between(row.signature_start, row.text_start) for row in rows]),
            "rivals": torch.tensor(rivals),
        }

    return RowBatches([(0, len(_packed(lesson).tokens)) for lesson in lessons], collate, config)


@dataclass(frozen=True)
class _Packed:
    """A lesson as one sequence: what all rows begin with (branch 0), then the rest of each row (its own branch).

    `places` says where each token of each row is.
    """

    tokens: list[int]
    positions: list[int]
    branches: list[int]
    places: list[list[int]]


def _packed(lesson: Lesson) -> _Packed:
    columns = zip(*(row.tokens for row in lesson), strict=False)
    shared = len(list(takewhile(lambda column: len(set(column)) == 1, columns)))
    tokens, positions, branches = lesson[0].tokens[:shared], list(range(shared)), [0] * shared
    places = []
    for branch, row in enumerate(lesson, start=1):
        own = row.tokens[shared:]
        places.append([*range(shared), *range(len(tokens), len(tokens) + len(own))])
        tokens += own
        positions += range(shared, len(row.tokens))
        branches += [branch] * len(own)
    return _Packed(tokens, positions, branches, places)


def visible(branches: Any) -> Any:
    """(lessons, 1, longest, longest): what is added to attention, so that a row sees itself and what is shared."""
    torch = require("torch", "train")
    longest = branches.shape[1]
    before = torch.ones(longest, longest, dtype=torch.bool, device=branches.device).tril()
    own = branches[:, :, None] == branches[:, None, :]
    seen = (own | (branches == 0)[:, None, :]) & before
    return torch.zeros(seen.shape, device=branches.device).masked_fill(~seen, torch.finfo(torch.float32).min)[
        :, None
    ]
