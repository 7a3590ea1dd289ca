"""Score answer sets: the value of every metric for every source.

Degenerate sets are defined: an answer without visible text takes up a position in its set but is not scored; what
remains is scored as it is (see the metrics for a single answer or none).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from cod3s.critic.likelihoods import Pair
from cod3s.evaluate.grading import Bars, Grader, numbered
from cod3s.metrics.fidelity import Request
from cod3s.metrics.lexical import bleu_diversity, distinct_ngrams, self_bleu
from cod3s.metrics.novelty import distinct_classes, equivalence_classes, utility
from cod3s.metrics.pair_scores import all_known
from cod3s.metrics.semantic import PARAPHRASE, THRESHOLDS, distinct, mean_distance, vendi_score
from cod3s.records import Answer, AnswerSet
from cod3s.text import clean, is_visible

COUNTED = 10
"""Answers among which distinct ones are counted, as in the lower part of the paper's table 2."""


class Column(NamedTuple):
    """What is measured: `group` is a set size ("3"), "distinct", "plausible" or "effective"; `metric` its name."""

    group: str
    metric: str


class RelationValues:
    """The values of a system on a relation, set by set, and the bins that its answers were written for."""

    def __init__(self) -> None:
        self.columns: dict[Column, dict[str, float]] = {}  # by source
        self.requests: list[list[Request]] = []  # by set
        self.short = 0  # sets with fewer visible answers than the largest size
        self.own_grades: set[str] = set()  # scorers that also chose the answers
        self._seen: Counter[str] = Counter()

    def add(self, answers: AnswerSet, grader: Grader, bars: Bars, sizes: Sequence[int]) -> None:
        """Score another set; a source that occurs again in the data counts as another one."""
        self._seen[answers.source] += 1
        number = self._seen[answers.source]
        source = answers.source if number == 1 else f"{answers.source} #{number}"
        for column, value in _set_values(answers, grader, bars, sizes):
            self.columns.setdefault(column, {})[source] = value
        self.requests.append([*_requests(answers.answers, grader)])
        self.short += len(_visible_texts(answers.answers[: max(sizes)])) < max(sizes)
        self.own_grades |= _own_grades(answers.settings, grader)


def distinct_group(number: int) -> str:
    """The group of distinct counts by the first, second … encoder."""
    return "distinct" if number == 1 else f"distinct_encoder{number}"


def grade_sets(sets: Iterable[AnswerSet], grader: Grader) -> None:
    """Encode and grade all that the scores of these sets need, together."""
    pairs = [
        Pair(answers.relation, clean(answers.source), text)
        for answers in sets
        for text in _visible_texts(answers.answers)
    ]
    statements = [grader.statement(pair.relation, pair.source, pair.target) for pair in pairs]
    for vectors in grader.measures:
        vectors.add(statements)
    grader.grade(pairs)


def _set_values(
    answers: AnswerSet, grader: Grader, bars: Bars, sizes: Sequence[int]
) -> Iterator[tuple[Column, float]]:
    for size in sizes:
        texts = _visible_texts(answers.answers[:size])
        for metric, value in {**_diversity(texts, grader), **_plausibility(answers, texts, grader)}.items():
            yield Column(str(size), metric), value
        classes = equivalence_classes(grader.measures[0].distances(_statements(answers, texts, grader)))
        yield Column(str(size), "classes"), float(distinct_classes(classes))
        yield Column(str(size), "utility"), utility(classes, size)
    yield from _counts(answers, grader, bars)


def _diversity(texts: list[str], grader: Grader) -> dict[str, float]:
    distances = [vectors.distances(texts) for vectors in grader.measures]
    return {
        "bleu1": bleu_diversity(texts, 1),
        "bleu2": bleu_diversity(texts, 2),
        **{numbered("semantic", number): mean_distance(matrix) for number, matrix in enumerate(distances, 1)},
        "vendi": vendi_score(distances[0]),
        "distinct1": distinct_ngrams(texts, 1),
        "distinct2": distinct_ngrams(texts, 2),
        "self_bleu": self_bleu(texts),
    }


def _plausibility(answers: AnswerSet, texts: list[str], grader: Grader) -> dict[str, float]:
    """Mean grades of the answers; nothing without visible answers, or without a model that can grade."""
    pairs = _pairs(answers, texts)
    grades = {
        **{
            (name := numbered("relevance", number)): [grader.grades(pair)[name] for pair in pairs]
            for number in range(1, len(grader.measures) + 1)
        },
        "likelihood": all_known([grader.score(pair, "backward") for pair in pairs]),
        "backward_pmi": all_known([grader.score(pair, "backward_pmi") for pair in pairs]),
    }
    return {name: float(np.mean(values)) for name, values in grades.items() if values}


def _counts(answers: AnswerSet, grader: Grader, bars: Bars) -> Iterator[tuple[Column, float]]:
    """Distinct answers by threshold; and, among those above the bar of each scorer, the effective count."""
    texts = _visible_texts(answers.answers[:COUNTED])
    statements = _statements(answers, texts, grader)
    distances = [vectors.distances(statements) for vectors in grader.measures]
    for number, matrix in enumerate(distances, 1):
        for threshold in THRESHOLDS:
            yield Column(distinct_group(number), f"{threshold:g}"), float(len(distinct(matrix, threshold)))
    for scorer, by_relation in bars.items():
        scores = all_known([grader.score(pair, scorer) for pair in _pairs(answers, texts)])
        if answers.relation in by_relation and len(scores) == len(texts):
            above = [number for number, score in enumerate(scores) if score > by_relation[answers.relation]]
            if scorer == "critic":
                yield Column("plausible", scorer), float(len(above))
            effective = distinct(distances[0][np.ix_(above, above)], PARAPHRASE)
            yield Column("effective", scorer), float(len(effective))


def _requests(answers: Sequence[Answer], grader: Grader) -> Iterator[Request]:
    """The answers that were written for a signature and whose realized signature is known."""
    visible = [(rank, answer) for rank, answer in enumerate(answers) if is_visible(answer.text)]
    realized = grader.signatures(_visible_texts(answers)) or [answer.realised for _, answer in visible]
    for (rank, answer), signature in zip(visible, realized, strict=True):
        if answer.signature and signature:
            yield Request(answer.signature, signature, rank, answer.count)


def _own_grades(settings: Mapping[str, object], grader: Grader) -> set[str]:
    """The scorers whose bundle also wrote the answers and, by its settings, chose among them by these scores."""
    if grader.models is None or settings.get("bundle") != grader.models.facts.name:
        return set()
    chosen_by = {settings.get("rerank_signatures"), settings.get("rerank_sentences")}
    return ({"critic"} if "critic" in chosen_by else set()) | (
        {"likelihood", "backward_pmi"} if "mmi" in chosen_by else set()
    )


def _visible_texts(answers: Sequence[Answer]) -> list[str]:
    """The cleaned texts of the answers with visible text."""
    return [clean(answer.text) for answer in answers if is_visible(answer.text)]


def _pairs(answers: AnswerSet, texts: list[str]) -> list[Pair]:
    source = clean(answers.source)
    return [Pair(answers.relation, source, text) for text in texts]


def _statements(answers: AnswerSet, texts: list[str], grader: Grader) -> list[str]:
    source = clean(answers.source)
    return [grader.statement(answers.relation, source, text) for text in texts]
