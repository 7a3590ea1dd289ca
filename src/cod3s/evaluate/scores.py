"""Score the answer sets of a system: every metric's value for every source.

Degenerate sets are defined: an answer without visible text takes up a position in its set but is not scored; what
remains is scored as it is (see the metrics for a single answer or none).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cod3s.decode.pair_likelihoods import Pair
from cod3s.errors import Cod3sError
from cod3s.evaluate.judged_pairs import Judged, TextVectors
from cod3s.metrics.fidelity import Request
from cod3s.metrics.lexical import bleu_diversity, distinct_ngrams, self_bleu
from cod3s.metrics.novelty import distinct_classes, equivalence_classes, utility
from cod3s.metrics.pair_scores import all_known, combine
from cod3s.metrics.semantic import (
    PARAPHRASE,
    THRESHOLDS,
    Distances,
    cosine_distances,
    distinct,
    mean_distance,
    vendi_score,
)
from cod3s.records import Answer, AnswerSet
from cod3s.signatures import Code, to_text
from cod3s.text import clean, complete, is_visible

COUNTED = 10
"""Answers among which distinct ones are counted, as in the lower part of the paper's table 2."""


@dataclass(frozen=True, order=True)
class Column:
    """What is measured: `group` is a set size ("3"), "distinct", "plausible" or "effective"; `metric` its name."""

    group: str
    metric: str


Values = dict[str, dict[Column, dict[str, float]]]
"""Relation → column → source → value."""


@dataclass(frozen=True)
class Scoring:
    """All that scoring needs: vectors of all texts, templates by relation, judged pairs, bars and a code."""

    answers: TextVectors
    statements: TextVectors
    second: TextVectors | None
    templates: Mapping[str, str]
    judged: Judged
    bars: Mapping[str, Mapping[str, float]]  # scorer → relation → bar
    code: Code | None
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class SystemScores:
    """All values of a system, and the bins that it was asked for, set by set."""

    values: Values
    requests: Mapping[str, tuple[tuple[Request, ...], ...]]  # relation → sets
    short: Mapping[str, int]  # relation → sets with fewer visible answers than the largest size


def visible_texts(answers: Sequence[Answer]) -> list[str]:
    """The cleaned texts of the answers with visible text."""
    return [text for _, text in _visible(answers)]


def answer_pairs(sets: Iterable[AnswerSet]) -> list[Pair]:
    """Every source with each of its answers."""
    return [
        Pair(answers.relation, clean(answers.source), text)
        for answers in sets
        for text in visible_texts(answers.answers)
    ]


def statements(sets: Iterable[AnswerSet], templates: Mapping[str, str]) -> list[str]:
    """Every completed statement."""
    return [
        complete(template_of(pair.relation, templates), pair.source, pair.target) for pair in answer_pairs(sets)
    ]


def template_of(relation: str, templates: Mapping[str, str]) -> str:
    """The relation's template, or a clear error."""
    if relation not in templates:
        raise Cod3sError(
            f"the template of the relation {relation!r} is unknown",
            hint="give the bundle that defines it: --bundle FOLDER",
        )
    return templates[relation]


def score_system(sets: Sequence[AnswerSet], scoring: Scoring) -> SystemScores:
    """Every metric for every source; a source that occurs twice in the data counts as two."""
    values: Values = {}
    requests: dict[str, list[tuple[Request, ...]]] = {}
    short: Counter[str] = Counter()
    seen: Counter[tuple[str, str]] = Counter()
    for answers in sets:
        number = seen[answers.relation, answers.source]
        seen[answers.relation, answers.source] += 1
        key = f"{answers.source} #{number + 1}" if number else answers.source
        columns = values.setdefault(answers.relation, {})
        for column, value in _score_set(answers, scoring):
            columns.setdefault(column, {})[key] = value
        requests.setdefault(answers.relation, []).append(tuple(_requests(answers, scoring)))
        short[answers.relation] += len(visible_texts(answers.answers[: max(scoring.sizes)])) < max(scoring.sizes)
    return SystemScores(values, {name: tuple(rows) for name, rows in requests.items()}, short)


def _score_set(answers: AnswerSet, scoring: Scoring) -> Iterator[tuple[Column, float]]:
    for size in scoring.sizes:
        texts = visible_texts(answers.answers[:size])
        classes = equivalence_classes(_statement_distances(answers, texts, scoring))
        figures = {
            **_diversity(texts, scoring),
            "classes": float(distinct_classes(classes)),
            "utility": utility(classes, size),
            **_quality(answers, texts, scoring),
        }
        for metric, value in figures.items():
            yield Column(str(size), metric), value
    yield from _counts(answers, scoring)


def _statement_distances(answers: AnswerSet, texts: list[str], scoring: Scoring) -> Distances:
    template, source = template_of(answers.relation, scoring.templates), clean(answers.source)
    completed = [complete(template, source, text) for text in texts]
    return cosine_distances(completed, scoring.statements.of(completed))


def _diversity(texts: list[str], scoring: Scoring) -> dict[str, float]:
    distances = cosine_distances(texts, scoring.answers.of(texts))
    figures = {
        "bleu1": bleu_diversity(texts, 1),
        "bleu2": bleu_diversity(texts, 2),
        "semantic": mean_distance(distances),
        "vendi": vendi_score(distances),
        "distinct1": distinct_ngrams(texts, 1),
        "distinct2": distinct_ngrams(texts, 2),
        "self_bleu": self_bleu(texts),
    }
    if scoring.second:
        figures["semantic2"] = mean_distance(cosine_distances(texts, scoring.second.of(texts)))
    return figures


def _quality(answers: AnswerSet, texts: list[str], scoring: Scoring) -> dict[str, float]:
    """Mean plausibility of the answers; nothing without visible answers or without a model that can score."""
    figures = {}
    for scorer in ("relevance", "backward", "backward_pmi"):
        scores = _plausibility(answers, texts, scoring, scorer)
        if scores:
            figures["likelihood" if scorer == "backward" else scorer] = float(np.mean(scores))
    return figures


def _plausibility(answers: AnswerSet, texts: list[str], scoring: Scoring, scorer: str) -> list[float]:
    source = clean(answers.source)
    return all_known([combine(scoring.judged[Pair(answers.relation, source, text)], scorer) for text in texts])


def _counts(answers: AnswerSet, scoring: Scoring) -> Iterator[tuple[Column, float]]:
    """Distinct answers by threshold; and, among those above the bar of each scorer, the effective count."""
    texts = visible_texts(answers.answers[:COUNTED])
    distances = _statement_distances(answers, texts, scoring)
    for threshold in THRESHOLDS:
        yield Column("distinct", f"{threshold:g}"), float(len(distinct(distances, threshold)))
    for scorer, bars in scoring.bars.items():
        scores = _plausibility(answers, texts, scoring, scorer)
        if answers.relation in bars and len(scores) == len(texts):
            above = [position for position, score in enumerate(scores) if score > bars[answers.relation]]
            if scorer == "critic":
                yield Column("plausible", scorer), float(len(above))
            yield Column("effective", scorer), float(len(distinct(distances[np.ix_(above, above)], PARAPHRASE)))


def _requests(answers: AnswerSet, scoring: Scoring) -> Iterator[Request]:
    """The answers that were written for a signature and whose realised signature is known."""
    visible = _visible(answers.answers)
    realised = [answers.answers[rank].realised for rank, _ in visible]
    if scoring.code and visible:
        realised = to_text(scoring.code.sign(scoring.answers.of([text for _, text in visible])))
    for (rank, _), signature in zip(visible, realised, strict=True):
        answer = answers.answers[rank]
        if answer.signature and signature:
            yield Request(answer.signature, signature, rank, answer.count)


def _visible(answers: Sequence[Answer]) -> list[tuple[int, str]]:
    return [(rank, clean(answer.text)) for rank, answer in enumerate(answers) if is_visible(answer.text)]
