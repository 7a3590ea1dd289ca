"""Lessons: a source with good answers, rejected ones to compare them with, and answers to judge, as tokens.

Most good answers come after their own signatures, so that the model also learns to follow signatures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cod3s.critic.examples import CONTRASTS, VERDICTS, LabelledPair, by_question
from cod3s.critic.refine_config import RefineConfig
from cod3s.critic.row_batches import RowBatches, filled
from cod3s.decode.models import BundleModels, RoleModel
from cod3s.errors import Cod3sError, require
from cod3s.model.causal_engine import CausalEngine
from cod3s.signatures.signer import Signer
from cod3s.text import for_modelling


@dataclass(frozen=True)
class Row:
    """The tokens of an answer after its source.

    `rival` is the number of the accepted row that a rejected one is compared with. A row with a `verdict`, how
    plausible the answer is from 0 to 1, teaches to judge the answer, not to write it.
    """

    tokens: list[int]
    signature_start: int
    text_start: int
    rival: int | None = None
    verdict: float | None = None


Lesson = list[Row]
"""All rows begin with the same source."""
_PARTLY = 0.5  # what is partly plausible lies between: it says more about the order of answers than a plain no


def make_lessons(
    examples: Sequence[LabelledPair],
    models: BundleModels,
    signer: Signer,
    config: RefineConfig,
    random: np.random.Generator,
) -> Iterator[Lesson]:
    """The good answers to each source, each followed by some rejected ones; then all that are to be judged."""
    texts = list(dict.fromkeys(example.pair.target for example in examples if example.is_good))
    signatures = dict(zip(texts, signer.signatures_of(signer.vectors(texts)), strict=True)) if texts else {}
    for answers in by_question(examples):
        read = [example for example in answers if example.data == VERDICTS]
        rejected = [example.pair.target for example in read if not example.plausible and not example.partly]
        lesson: Lesson = []
        for pair in (example.pair for example in answers if example.is_good):
            plain = random.random() < config.plain
            role = models.plain(pair.relation) if plain else models.sentence(pair.relation)
            signature = () if plain else models.vocabulary.encode_signature(signatures[pair.target])
            accepted = len(lesson)
            lesson.append(_row(role, pair.source, signature, pair.target))
            lesson += [
                _row(role, pair.source, signature, rejected[number], accepted)
                for number in random.permutation(len(rejected))[: config.rivals].tolist()
            ]
        judged = [example for example in answers if example.data in (VERDICTS, CONTRASTS)]
        for example in judged if config.judging else ():
            pair = example.pair
            row = _row(models.plain(pair.relation), pair.source, (), pair.target)
            lesson.append(replace(row, verdict=_verdict(example)))
        if lesson:
            yield lesson


def _verdict(example: LabelledPair) -> float:
    return 1.0 if example.plausible else _PARTLY if example.partly else 0.0


def _row(role: RoleModel, source: str, signature: Sequence[int], text: str, rival: int | None = None) -> Row:
    if not isinstance(role.engine, CausalEngine):
        raise Cod3sError("only bundles of a causal language model can be refined")
    request = role.request(for_modelling(source), signature)
    start = len(role.engine.pair_row(request, ())) - 1
    tokens = role.engine.pair_row(request, role.words.encode_text(for_modelling(text)))
    return Row(tokens, start - len(signature), start, rival)


def lesson_batches(lessons: Sequence[Lesson], pad: int, config: RefineConfig) -> RowBatches:
    """The lessons as a model reads them, which tokens of each row are its text and its signature, and verdicts.

    A row without a verdict has -1, and one with a verdict teaches no text.
    """
    torch = require("torch", "train")

    def extra(numbers: Sequence[int]) -> dict[str, Any]:
        text, signature = [], []
        rivals: list[int] = []
        verdicts, lasts = [], []
        for lesson in (lessons[number] for number in numbers):
            first = len(rivals)
            for place, row in enumerate(lesson):
                written = len(row.tokens) - row.text_start
                text.append([0] * row.text_start + [int(row.verdict is None)] * written)
                signature.append(
                    [0] * row.signature_start + [1] * (row.text_start - row.signature_start) + [0] * written
                )
                rivals.append(first + (place if row.rival is None else row.rival))
                verdicts.append(-1.0 if row.verdict is None else row.verdict)
                lasts.append(len(row.tokens) - 1)
        return {
            "text": torch.tensor(filled(text)),
            "signature": torch.tensor(filled(signature)),
            "rivals": torch.tensor(rivals),
            "verdicts": torch.tensor(verdicts),
            "lasts": torch.tensor(lasts),
        }

    return RowBatches([[row.tokens for row in lesson] for lesson in lessons], extra, pad, config)
