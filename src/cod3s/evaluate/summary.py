"""The summary of an evaluation: means with intervals and tests, behind metrics.json, the tables and the page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from cod3s.evaluate.grading import Choice
from cod3s.evaluate.scores import Column, RelationValues
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
    own_grades: tuple[str, ...] = ()  # scorers that also chose the answers


@dataclass(frozen=True)
class Summary:
    """All figures of an evaluation, and the settings behind them."""

    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    systems: Mapping[str, Mapping[str, RelationScores]]
    comparisons: Mapping[str, Mapping[Column, list[Comparison]]]  # relation → column
    choices: Sequence[Choice] = ()
    inference: Mapping[str, Mapping[str, InferenceScores]] = field(default_factory=dict)  # guesser → relation
    remarks: Sequence[str] = ()  # what a reader should know: skipped systems, sources that there was no time for

    @property
    def relations(self) -> list[str]:
        """Effects before causes, as in the paper; then others in order of appearance."""
        return in_paper_order(dict.fromkeys(relation for by_name in self.systems.values() for relation in by_name))

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
            "remarks": list(self.remarks),
        }
        return {"settings": dict(self.settings), "data": dict(self.data), **rounded(figures)}


def in_paper_order(relations: Iterable[str]) -> list[str]:
    """Effects before causes, then the others in their order."""
    return sorted(relations, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))


Values = Mapping[str, Mapping[str, RelationValues]]
"""System → relation → its values."""


def compare_systems(values: Values) -> dict[str, dict[Column, list[Comparison]]]:
    """The tests of every column of a relation, between all systems that have it."""
    relations = dict.fromkeys(relation for by_relation in values.values() for relation in by_relation)
    comparisons: dict[str, dict[Column, list[Comparison]]] = {}
    for relation in relations:
        by_column: dict[Column, dict[str, Mapping[str, float]]] = {}
        for system, by_relation in values.items():
            for column, by_source in by_relation[relation].columns.items() if relation in by_relation else ():
                by_column.setdefault(column, {})[system] = by_source
        comparisons[relation] = {column: compare_all(by_system) for column, by_system in by_column.items()}
    return comparisons


def summarize(
    values: Values, comparisons: Mapping[str, Mapping[Column, list[Comparison]]], seed: int
) -> dict[str, dict[str, RelationScores]]:
    """The means of every system by relation, with their intervals, and whether they are near the best."""
    return {
        system: {
            relation: RelationScores(
                sets=len(row.requests),
                short=row.short,
                figures={
                    column: figure_of(
                        system, by_source, comparisons[relation][column], seed, column.metric in LOWER_IS_BETTER
                    )
                    for column, by_source in row.columns.items()
                },
                control=_control(row.requests),
                own_grades=tuple(sorted(row.own_grades)),
            )
            for relation, row in by_relation.items()
        }
        for system, by_relation in values.items()
    }


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


def _control(sets: Sequence[Sequence[Request]]) -> Control | None:
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
    record["own_grades"] = list(scores.own_grades)
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
