"""Lessons: a source with good answers, rejected ones to compare them with, and answers to judge, as tokens.

Most good answers come after their own signatures, so that the model also learns to follow signatures.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cod3s.critic.examples import CONTRASTS, VERDICTS, LabelledPair, by_question
from cod3s.critic.refine_config import RefineConfig
from cod3s.decode.models import BundleModels, RoleModel
from cod3s.errors import Cod3sError
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
"""Rows that begin with the same source."""
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
    signatures = dict(zip(texts, signer.signatures(texts), strict=True))
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
        for example in answers:
            if config.judging and example.data in (VERDICTS, CONTRASTS):
                pair = example.pair
                row = _row(models.plain(pair.relation), pair.source, (), pair.target)
                verdict = 1.0 if example.plausible else _PARTLY if example.partly else 0.0
                lesson.append(replace(row, verdict=verdict))
        if lesson:
            yield lesson


def _row(role: RoleModel, source: str, signature: Sequence[int], text: str, rival: int | None = None) -> Row:
    if not isinstance(role.engine, CausalEngine):
        raise Cod3sError("only bundles of a causal language model can be refined")
    request = role.request(for_modelling(source), signature)
    start = len(role.engine.pair_row(request, ())) - 1
    tokens = role.engine.pair_row(request, role.words.encode_text(for_modelling(text)))
    return Row(tokens, start - len(signature), start, rival)
