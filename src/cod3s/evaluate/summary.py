"""The summary of an evaluation: means with intervals and tests, behind metrics.json, the tables and the page."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cod3s.evaluate.judged_pairs import Choice
from cod3s.evaluate.scores import Column, SystemScores
from cod3s.metrics.fidelity import Fidelity, Request, by_bin_size, by_rank, fidelity, other_answers_hamming
from cod3s.metrics.inference import InferenceScores
from cod3s.metrics.significance import Comparison, beaten, bootstrap_interval, compare_all

LOWER_IS_BETTER = ("self_bleu",)
_FIRST = ("effect", "cause")


@dataclass(frozen=True)
class Interval:
    """A mean and its bootstrap interval."""

    mean: float
    low: float
    high: float

    @property
    def error(self) -> list[list[float]]:
        """How far the interval reaches below and above the mean, as matplotlib takes it."""
        return [[max(0.0, self.mean - self.low)], [max(0.0, self.high - self.mean)]]


@dataclass(frozen=True)
class Figure(Interval):
    """A mean over sources, and whether no other system is significantly better."""

    near_best: bool


@dataclass(frozen=True)
class Control:
    """How well the answers keep to the bins that they were written for."""

    whole: Fidelity
    other_hamming: float | None  # what `whole.hamming` would be if the bins were ignored
    by_rank: Mapping[int, Fidelity]
    by_bin_size: Mapping[int, Fidelity]


@dataclass(frozen=True)
class RelationScores:
    """A system's results on a relation."""

    sets: int
    short: int  # sets with fewer visible answers than the largest size
    figures: Mapping[Column, Figure]
    control: Control | None


@dataclass(frozen=True)
class Summary:
    """All figures of an evaluation, and the settings behind them."""

    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    systems: Mapping[str, Mapping[str, RelationScores]]
    comparisons: Mapping[str, Mapping[Column, list[Comparison]]]  # relation → column
    choices: tuple[Choice, ...]
    inference: Mapping[str, Mapping[str, InferenceScores]]  # guesser → relation

    @property
    def relations(self) -> list[str]:
        """Effects before causes, as in the paper; then others in order of appearance."""
        names = dict.fromkeys(relation for relations in self.systems.values() for relation in relations)
        return in_paper_order(names)

    def figure(self, system: str, relation: str, column: Column) -> Figure | None:
        """One figure; None if the system does not have it."""
        scores = self.systems[system].get(relation)
        return scores.figures.get(column) if scores else None

    def record(self) -> dict[str, Any]:
        """The content of metrics.json."""
        figures = {
            "systems": {
                name: {relation: _relation_record(scores) for relation, scores in relations.items()}
                for name, relations in self.systems.items()
            },
            "choices": [asdict(choice) for choice in self.choices],
            "inference": {
                name: {relation: asdict(scores) for relation, scores in relations.items()}
                for name, relations in self.inference.items()
            },
            "significance": {
                relation: _nested({column: [asdict(row) for row in rows] for column, rows in columns.items()})
                for relation, columns in self.comparisons.items()
            },
        }
        return {"settings": dict(self.settings), "data": dict(self.data), **rounded(figures)}


def in_paper_order(relations: Iterable[str]) -> list[str]:
    """Effects before causes, then the others in their order."""
    return sorted(relations, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))


def summarise(
    scores: Mapping[str, SystemScores],
    *,
    settings: Mapping[str, Any],
    data: Mapping[str, Any],
    seed: int,
    choices: tuple[Choice, ...],
    inference: Mapping[str, Mapping[str, InferenceScores]] | None,
) -> Summary:
    """Means, intervals and tests of all systems."""
    relations = list(dict.fromkeys(relation for system in scores.values() for relation in system.values))
    comparisons = {relation: _compare(scores, relation) for relation in relations}
    systems = {
        name: {
            relation: _relation_scores(name, relation, system, comparisons[relation], seed)
            for relation in system.values
        }
        for name, system in scores.items()
    }
    return Summary(settings, data, systems, comparisons, choices, inference or {})


def _compare(scores: Mapping[str, SystemScores], relation: str) -> dict[Column, list[Comparison]]:
    columns = dict.fromkeys(column for system in scores.values() for column in system.values.get(relation, {}))
    return {
        column: compare_all(
            {
                name: system.values[relation][column]
                for name, system in scores.items()
                if column in system.values.get(relation, {})
            }
        )
        for column in columns
    }


def _relation_scores(
    name: str, relation: str, system: SystemScores, comparisons: Mapping[Column, list[Comparison]], seed: int
) -> RelationScores:
    figures = {
        column: figure_of(name, by_source, comparisons[column], seed, column.metric in LOWER_IS_BETTER)
        for column, by_source in system.values[relation].items()
    }
    sets = system.requests[relation]
    return RelationScores(len(sets), system.short.get(relation, 0), figures, _control(sets))


def figure_of(
    system: str,
    by_source: Mapping[str, float],
    comparisons: list[Comparison],
    seed: int,
    lower_is_better: bool = False,
) -> Figure:
    """A system's mean over sources with its interval, and whether no other system is significantly better."""
    values = list(by_source.values())
    low, high = bootstrap_interval(values, seed=seed)
    return Figure(float(np.mean(values)), low, high, not beaten(system, comparisons, lower_is_better))


def _control(sets: tuple[tuple[Request, ...], ...]) -> Control | None:
    requests = [request for answer_set in sets for request in answer_set]
    whole = fidelity(requests)
    if whole is None:
        return None
    return Control(whole, other_answers_hamming(sets), by_rank(requests), by_bin_size(requests))


def _relation_record(scores: RelationScores) -> dict[str, Any]:
    figures = scores.figures
    record: dict[str, Any] = {"answers": {"sets": scores.sets, "short": scores.short}}
    record |= _nested({column: figure.mean for column, figure in figures.items()})
    if scores.control:
        control = asdict(scores.control)
        record["fidelity"] = {**control.pop("whole"), **control}
    record["intervals"] = _nested({column: [figure.low, figure.high] for column, figure in figures.items()})
    record["near_best"] = _nested({column: figure.near_best for column, figure in figures.items()})
    return record


def _nested(columns: Mapping[Column, Any]) -> dict[str, Any]:
    groups: dict[str, Any] = {}
    for column, value in columns.items():
        groups.setdefault(column.group, {})[column.metric] = value
    return groups


def rounded(value: Any) -> Any:
    """The value as in metrics.json: with floats rounded, because their last bits differ between processors."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {str(name): rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part) for part in value]
    return value
