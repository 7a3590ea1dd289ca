"""Lessons: a source with good answers, and with rejected ones to compare them with, as tokens that a model reads.

Most answers come after their own signatures, so that the model also learns to follow signatures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cod3s.critic.examples import LabelledPair, by_question
from cod3s.critic.row_batches import RowBatches, filled
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
    for answers in by_question(examples):
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
    """The lessons as a model reads them, and which tokens of each row are its text and its signature."""
    torch = require("torch", "train")

    def extra(numbers: Sequence[int]) -> dict[str, Any]:
        text, signature = [], []
        rivals: list[int] = []
        for lesson in (lessons[number] for number in numbers):
            first = len(rivals)
            for place, row in enumerate(lesson):
                written = len(row.tokens) - row.text_start
                text.append([0] * row.text_start + [1] * written)
                signature.append(
                    [0] * row.signature_start + [1] * (row.text_start - row.signature_start) + [0] * written
                )
                rivals.append(first + (place if row.rival is None else row.rival))
        return {
            "text": torch.tensor(filled(text)),
            "signature": torch.tensor(filled(signature)),
            "rivals": torch.tensor(rivals),
        }

    return RowBatches([[row.tokens for row in lesson] for lesson in lessons], extra, pad, config)
