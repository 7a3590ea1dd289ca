"""Scores of stored outputs: the answer sets of one system → every metric's value for every source.

Degenerate sets are defined: an answer with nothing visible in it takes its place in the set but says nothing,
and is left out before scoring; what remains is scored as it is (see the metrics for one answer or none).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cod3s.errors import Cod3sError, SentenceError
from cod3s.evaluate.pairs import Judged, Pair, TextVectors
from cod3s.metrics.fidelity import Request
from cod3s.metrics.lexical import bleu_diversity, distinct_ngrams, self_bleu
from cod3s.metrics.plausibility import combine
from cod3s.metrics.semantic import THRESHOLDS, cosine_distances, distinct, mean_distance, vendi_score
from cod3s.records import Answer, AnswerSet
from cod3s.signatures import Code, to_text
from cod3s.text import clean, complete

COUNTED = 10
"""Answers of which the distinct ones are counted, as in the paper's lower table 2."""
PARAPHRASE = 0.1  # the threshold of the effective count: the paper's choice (appendix E)


@dataclass(frozen=True, order=True)
class Column:
    """What is measured: `group` is a set size ("3"), "distinct" or "effective"; `metric` its name therein."""

    group: str
    metric: str


Values = dict[str, dict[Column, dict[str, float]]]
"""Relation → column → source → value."""


@dataclass(frozen=True)
class Scoring:
    """What scores: encoders with the vectors of all texts, templates by relation, judged pairs, bars, a code."""

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
    """All values of one system, and the requests for bins that it was given, set by set."""

    values: Values
    requests: Mapping[str, tuple[tuple[Request, ...], ...]]  # relation → sets
    short: Mapping[str, int]  # relation → sets with fewer visible answers than the largest size


def said(answers: Sequence[Answer]) -> list[str]:
    """The cleaned texts of the answers that say something."""
    return [text for _, text in _visible(answers)]


def answer_pairs(sets: Iterable[AnswerSet]) -> list[Pair]:
    """Every source with each of its answers."""
    return [Pair(own.relation, clean(own.source), text) for own in sets for text in said(own.answers)]


def statements(sets: Iterable[AnswerSet], templates: Mapping[str, str]) -> list[str]:
    """Every completed statement."""
    return [
        complete(template_of(pair.relation, templates), pair.source, pair.target) for pair in answer_pairs(sets)
    ]


def template_of(relation: str, templates: Mapping[str, str]) -> str:
    """The relation's template, or a clear error."""
    if relation not in templates:
        raise Cod3sError(
            f"the outputs have the relation {relation!r}, whose completed statement is not known",
            hint="give the bundle that defines it with --bundle",
        )
    return templates[relation]


def score_system(sets: Sequence[AnswerSet], scoring: Scoring) -> SystemScores:
    """Every metric for every source; a source that stands twice in the data is two sources."""
    values: Values = {}
    requests: dict[str, list[tuple[Request, ...]]] = {}
    short: Counter[str] = Counter()
    seen: Counter[tuple[str, str]] = Counter()
    for own in sets:
        number = seen[own.relation, own.source]
        seen[own.relation, own.source] += 1
        key = f"{own.source} #{number + 1}" if number else own.source
        columns = values.setdefault(own.relation, {})
        for column, value in _score_set(own, scoring):
            columns.setdefault(column, {})[key] = value
        requests.setdefault(own.relation, []).append(tuple(_requests(own, scoring)))
        short[own.relation] += len(said(own.answers[: max(scoring.sizes)])) < max(scoring.sizes)
    return SystemScores(values, {name: tuple(rows) for name, rows in requests.items()}, short)


def _score_set(own: AnswerSet, scoring: Scoring) -> Iterator[tuple[Column, float]]:
    for size in scoring.sizes:
        texts = said(own.answers[:size])
        for metric, value in {**_diversity(texts, scoring), **_quality(own, texts, scoring)}.items():
            yield Column(str(size), metric), value
    yield from _counts(own, scoring)


def _diversity(texts: list[str], scoring: Scoring) -> dict[str, float]:
    distances = cosine_distances(texts, scoring.answers.of(texts))
    found = {
        "bleu1": bleu_diversity(texts, 1),
        "bleu2": bleu_diversity(texts, 2),
        "semantic": mean_distance(distances),
        "vendi": vendi_score(distances),
        "distinct1": distinct_ngrams(texts, 1),
        "distinct2": distinct_ngrams(texts, 2),
        "self_bleu": self_bleu(texts),
    }
    if scoring.second:
        found["semantic2"] = mean_distance(cosine_distances(texts, scoring.second.of(texts)))
    return found


def _quality(own: AnswerSet, texts: list[str], scoring: Scoring) -> dict[str, float]:
    """Mean plausibility of the answers; nothing where nothing was said or no model can score."""
    found = {}
    for scorer in ("relevance", "backward", "backward_pmi"):
        scores = _plausibility(own, texts, scoring, scorer)
        if scores:
            found["likelihood" if scorer == "backward" else scorer] = float(np.mean(scores))
    return found


def _plausibility(own: AnswerSet, texts: list[str], scoring: Scoring, scorer: str) -> list[float]:
    source = clean(own.source)
    scores = [combine(scoring.judged[Pair(own.relation, source, text)], scorer) for text in texts]
    return [score for score in scores if score is not None]


def _counts(own: AnswerSet, scoring: Scoring) -> Iterator[tuple[Column, float]]:
    """Distinct answers by threshold; and of those above the bar of each scorer, the effective count."""
    texts = said(own.answers[:COUNTED])
    template, source = template_of(own.relation, scoring.templates), clean(own.source)
    whole = [complete(template, source, text) for text in texts]
    distances = cosine_distances(whole, scoring.statements.of(whole))
    for threshold in THRESHOLDS:
        yield Column("distinct", f"{threshold:g}"), float(len(distinct(distances, threshold)))
    for scorer, bars in scoring.bars.items():
        scores = _plausibility(own, texts, scoring, scorer)
        if own.relation in bars and len(scores) == len(texts):
            above = [place for place, score in enumerate(scores) if score > bars[own.relation]]
            kept = distinct(distances[np.ix_(above, above)], PARAPHRASE)
            yield Column("effective", scorer), float(len(kept))


def _requests(own: AnswerSet, scoring: Scoring) -> Iterator[Request]:
    """The answers that were asked for by signature and whose own signature is known."""
    visible = list(_visible(own.answers))
    realised = [own.answers[rank].realised for rank, _ in visible]
    if scoring.code and visible:
        realised = to_text(scoring.code.sign(scoring.answers.of([text for _, text in visible])))
    for (rank, _), found in zip(visible, realised, strict=True):
        asked = own.answers[rank]
        if asked.signature and found:
            yield Request(asked.signature, found, rank, asked.count)


def _visible(answers: Sequence[Answer]) -> Iterator[tuple[int, str]]:
    for rank, answer in enumerate(answers):
        try:
            yield rank, clean(answer.text)
        except SentenceError:
            continue
