"""Plausibility of (source, target) pairs by an encoder and, where a bundle is at hand, by its models.

Pairs and questions in; scores, choice accuracies and the bars of the effective count out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from cod3s.corpus.questions import Question
from cod3s.evaluate.embedded import Embedded
from cod3s.metrics.plausibility import SCORERS, PairScores, choice_credits, combine, plausibility_bar
from cod3s.metrics.significance import bootstrap_interval
from cod3s.text import clean


@dataclass(frozen=True, order=True)
class Pair:
    """A source and a target that may answer it."""

    relation: str
    source: str
    target: str


class Likelihoods(Protocol):
    """A model that can say how likely a pair is; relevance is left at 0."""

    def score_pairs(self, pairs: Sequence[Pair]) -> list[PairScores]: ...


Judged = Mapping[Pair, PairScores]


@dataclass(frozen=True)
class Choice:
    """How often one scorer prefers the right alternative, with the bootstrap interval of that share."""

    data: str
    relation: str
    scorer: str
    questions: int
    accuracy: float
    low: float
    high: float


def judge_pairs(pairs: Iterable[Pair], embedded: Embedded, model: Likelihoods | None) -> Judged:
    """The scores of each pair, computed once; `embedded` has the texts of all."""
    distinct = sorted(set(pairs))
    sources = embedded.of([pair.source for pair in distinct])
    targets = embedded.of([pair.target for pair in distinct])
    cosines = np.einsum("nd,nd->n", sources, targets)
    scores = model.score_pairs(distinct) if model else [PairScores(0.0)] * len(distinct)
    rows = zip(distinct, scores, cosines, strict=True)
    return {pair: replace(own, relevance=float(cosine)) for pair, own, cosine in rows}


def question_pairs(questions: Iterable[Question]) -> list[Pair]:
    """Every premise with each of its alternatives."""
    return [pair for question in questions for pair in _pairs(question)]


def score_choices(name: str, questions: Sequence[Question], judged: Judged, seed: int) -> list[Choice]:
    """The accuracy of every scorer that can score, on the questions whose answer is known, by relation."""
    found = []
    for relation in dict.fromkeys(question.direction for question in questions):
        for scorer in SCORERS:
            scores, answers = _scored(questions, relation, judged, scorer)
            if scores:
                credits = choice_credits(scores, answers)
                low, high = bootstrap_interval(credits, seed=seed)
                found.append(Choice(name, relation, scorer, len(credits), float(np.mean(credits)), low, high))
    return found


def find_bars(
    questions: Sequence[Question], judged: Judged, scorers: Sequence[str]
) -> dict[str, dict[str, float]]:
    """For each scorer and relation, what a typical wrong alternative scores; nothing where none is known."""
    bars: dict[str, dict[str, float]] = {}
    for scorer in scorers:
        for relation in dict.fromkeys(question.direction for question in questions):
            bar = plausibility_bar(*_scored(questions, relation, judged, scorer))
            if bar is not None:
                bars.setdefault(scorer, {})[relation] = bar
    return bars


def _pairs(question: Question) -> list[Pair]:
    return [Pair(question.direction, clean(question.premise), clean(text)) for text in question.alternatives]


def _scored(
    questions: Sequence[Question], relation: str, judged: Judged, scorer: str
) -> tuple[list[list[float]], list[int]]:
    scores, answers = [], []
    for question in questions:
        if question.direction != relation or question.answer is None:
            continue
        own = [combine(judged[pair], scorer) for pair in _pairs(question)]
        if any(score is None for score in own):
            return [], []
        scores.append([score for score in own if score is not None])
        answers.append(question.answer)
    return scores, answers
