"""Score (source, target) pairs for plausibility with an encoder and, if there is a bundle, with its models."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cod3s.corpus.questions import Question
from cod3s.decode.pair_likelihoods import BundleLikelihoods, Pair, PairScores
from cod3s.decode.plausibility import PLAUSIBLE, Judge
from cod3s.encode import Encoder, Vectors
from cod3s.errors import Progress
from cod3s.metrics.pair_scores import SCORERS, all_known, choice_credits, combine, plausibility_bar
from cod3s.metrics.significance import bootstrap_interval
from cod3s.signatures.signer import embed_all
from cod3s.text import clean

Judged = Mapping[Pair, PairScores]

OF_ANSWERS = ("backward", "source_alone")
"""The parts of a pair's scores that the figures of a system need, apart from those of the critic."""
OF_QUESTIONS = ("forward", "target_alone", *OF_ANSWERS)
"""The parts that all scorers together need."""


class TextVectors:
    """The vectors of all `texts` from an encoder; each text is encoded once."""

    def __init__(self, encoder: Encoder, texts: Iterable[str], progress: Progress = lambda _: None) -> None:
        self.encoder = encoder
        # Sorted, so that a text's batch, and with it the last bits of its vector, depends on the texts alone.
        distinct = sorted(set(texts))
        self._rows = {text: row for row, text in enumerate(distinct)}
        self._vectors = embed_all(encoder, distinct, progress)

    def by_text(self) -> dict[str, Vectors]:
        """The vector of each text."""
        return {text: self._vectors[row] for text, row in self._rows.items()}

    def of(self, texts: Sequence[str]) -> Vectors:
        """The vectors of these texts, (n, dim)."""
        vectors: Vectors = self._vectors[[self._rows[text] for text in texts]]
        return vectors


@dataclass(frozen=True)
class Choice:
    """The share of questions in which a scorer prefers the right alternative, with its bootstrap interval."""

    data: str
    relation: str
    scorer: str
    questions: int
    accuracy: float
    low: float
    high: float


def judge_pairs(
    pairs: Iterable[Pair],
    vectors: TextVectors,
    model: BundleLikelihoods | None,
    judge: Judge | None = None,
    *,
    parts: Sequence[str] = OF_ANSWERS,
) -> Judged:
    """The scores of each pair, computed once: these parts, and what the judge needs besides them.

    `vectors` covers the texts of all pairs.
    """
    distinct = sorted(set(pairs))
    sources = vectors.of([pair.source for pair in distinct])
    targets = vectors.of([pair.target for pair in distinct])
    cosines = np.einsum("nd,nd->n", sources, targets)
    scores = model.score_pairs(distinct, parts) if model else [PairScores(0.0)] * len(distinct)
    scored = [replace(score, relevance=float(cosine)) for score, cosine in zip(scores, cosines, strict=True)]
    if judge:
        probabilities = judge.judge_scored(distinct, scored, vectors.by_text()).tolist()
        scored = [replace(score, critic=value) for score, value in zip(scored, probabilities, strict=True)]
    return dict(zip(distinct, scored, strict=True))


def question_pairs(questions: Iterable[Question]) -> list[Pair]:
    """Every premise with each of its alternatives."""
    return [pair for question in questions for pair in _pairs(question)]


def wrong_pairs(questions: Iterable[Question]) -> list[Pair]:
    """Every premise with each of its wrong alternatives, of the questions whose answer is known."""
    return [
        pair
        for question in questions
        for number, pair in enumerate(_pairs(question))
        if question.answer is not None and number != question.answer
    ]


def score_choices(name: str, questions: Sequence[Question], judged: Judged, seed: int) -> list[Choice]:
    """The accuracy per relation of every scorer that has scores, on the questions whose answer is known."""
    choices = []
    answered = [(question, question.answer) for question in questions if question.answer is not None]
    for relation in dict.fromkeys(question.direction for question, _ in answered):
        related = [(question, answer) for question, answer in answered if question.direction == relation]
        for scorer in SCORERS:
            scores = [
                all_known([combine(judged[pair], scorer) for pair in _pairs(question)]) for question, _ in related
            ]
            if all(scores):
                credits = choice_credits(scores, [answer for _, answer in related])
                low, high = bootstrap_interval(credits, seed=seed)
                choices.append(Choice(name, relation, scorer, len(credits), float(np.mean(credits)), low, high))
    return choices


def find_bars(wrong: Sequence[Pair], judged: Judged, scorers: Sequence[str]) -> dict[str, dict[str, float]]:
    """The score of a typical wrong alternative by scorer and relation, where any is known.

    A critic's scores are probabilities, so its bar does not depend on questions.
    """
    bars: dict[str, dict[str, float]] = {}
    judged_relations = {pair.relation for pair, scores in judged.items() if scores.critic is not None}
    if judged_relations:
        bars["critic"] = dict.fromkeys(sorted(judged_relations), PLAUSIBLE)
    for scorer in scorers:
        for relation in dict.fromkeys(pair.relation for pair in wrong):
            scores = [combine(judged[pair], scorer) for pair in wrong if pair.relation == relation]
            if (bar := plausibility_bar(scores)) is not None:
                bars.setdefault(scorer, {})[relation] = bar
    return bars


def _pairs(question: Question) -> list[Pair]:
    return [Pair(question.direction, clean(question.premise), clean(text)) for text in question.alternatives]
