"""Score how likely the models of a bundle find a pair in both directions, and their verdicts on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cod3s.models import BundleModels, RoleModel
from cod3s.records import Hypothesis, mean_log_prob
from cod3s.text import for_modelling

_JUDGED_TOKENS = 60
"""How much of a target a language model reads before its verdict: with the source, no more fits."""


@dataclass(frozen=True, order=True)
class Pair:
    """A source and a target that may answer it."""

    relation: str
    source: str
    target: str


@dataclass(frozen=True)
class PairScores:
    """What models and vectors say about a pair of a source and a target; None where a model is missing.

    Likelihoods are mean log-probabilities per token; the lengths count the tokens and the end. A verdict is the
    log-odds that a language model calls the pair plausible.
    """

    relevance: float  # the cosine of the two
    forward: float | None = None  # p(target | source)
    target_alone: float | None = None  # p(target | nothing)
    backward: float | None = None  # p(source | target)
    source_alone: float | None = None  # p(source | nothing)
    target_length: int = 0
    source_length: int = 0
    verdict: float | None = None  # on the target, given the source
    backward_verdict: float | None = None  # on the source, given the target, in the inverse relation
    critic: float | None = None  # how plausible a critic finds the pair, from 0 to 1


LIKELIHOODS = ("forward", "target_alone", "backward", "source_alone")


def score_pairs(
    models: BundleModels, pairs: Sequence[Pair], parts: Sequence[str] = LIKELIHOODS
) -> list[PairScores]:
    """The `parts` of the scores of each pair; those that have no model are None, and the relevance stays 0.

    A likelihood and the verdict of the same direction take a single pass.
    """
    scores: dict[Pair, PairScores] = {}
    for relation in dict.fromkeys(pair.relation for pair in pairs):
        related = [pair for pair in dict.fromkeys(pairs) if pair.relation == relation]
        scores |= dict(zip(related, _score_relation(models, relation, related, parts), strict=True))
    return [scores[pair] for pair in pairs]


def _score_relation(
    models: BundleModels, relation: str, pairs: Sequence[Pair], parts: Sequence[str]
) -> list[PairScores]:
    if relation not in models.facts.models:
        return [PairScores(0.0)] * len(pairs)
    sources = [for_modelling(pair.source) for pair in pairs]
    targets = [for_modelling(pair.target) for pair in pairs]
    nothing: list[None] = [None] * len(pairs)
    plain, inverse = models.plain(relation), models.backward(relation)
    passes: list[tuple[str, str, RoleModel | None, Sequence[str | None], Sequence[str]]] = [
        ("forward", "verdict", plain, sources, targets),
        ("target_alone", "", plain, nothing, targets),
        ("backward", "backward_verdict", inverse, targets, sources),
        ("source_alone", "", inverse, nothing, sources),
    ]
    columns: dict[str, Sequence[float | None]] = {}
    for likelihood, verdict, model, read, written in passes:
        if model is None or not {likelihood, verdict} & {*parts}:
            continue
        judged = verdict in parts and models.facts.judges
        yes = models.vocabulary.verdicts[0] if judged else None
        hypotheses = model.score(read, written, longest=_JUDGED_TOKENS, then=yes)
        columns[likelihood] = [*map(mean_log_prob, hypotheses)]
        if judged:
            columns[verdict] = _log_odds(hypotheses)
    lengths = {text: len(models.vocabulary.encode_text(text)) + 1 for text in {*sources, *targets}}
    return [
        PairScores(
            0.0,
            **{part: column[row] for part, column in columns.items() if part in parts},
            target_length=lengths[targets[row]],
            source_length=lengths[sources[row]],
        )
        for row in range(len(pairs))
    ]


def _log_odds(hypotheses: Sequence[Hypothesis]) -> list[float]:
    """How plausible a language model calls each pair: the log-odds of `yes` after its end."""
    shares = np.clip(np.exp([hypothesis.then or 0.0 for hypothesis in hypotheses]), 1e-6, 1 - 1e-6)
    log_odds: list[float] = np.log(shares / (1 - shares)).tolist()
    return log_odds
