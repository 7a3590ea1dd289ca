"""From ratings to results: a study, its items and its ratings in, one `Analysis` out.

What metrics.json, the tables, the figure and the page are made from. The same ratings give the same figures in
whatever order they come. Attention checks have no part in any figure but that of the checks themselves.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cod3s import __version__
from cod3s.errors import Cod3sError
from cod3s.evaluate.summary import FIRST, Figure, rounded
from cod3s.judge.results.agreement import Agreement, agreement
from cod3s.judge.results.figures import FIGURES, RatedAnswer, set_figures
from cod3s.judge.results.raters import RaterReport, report_raters
from cod3s.judge.study.study import ANSWER, CHECK, RIGHT, WRONG, Item, Rating, Study
from cod3s.metrics.significance import RESAMPLES, Comparison, beaten, bootstrap_interval, compare_all
from cod3s.options import SEED

Values = dict[str, dict[str, dict[str, float]]]
"""System → figure → source → value."""


@dataclass(frozen=True)
class SystemFigures:
    """One system on one relation: its figures, and over how many sources each was taken."""

    figures: Mapping[str, Figure]
    sources: Mapping[str, int]


@dataclass(frozen=True)
class GoldFigure:
    """The mean score of the right or of the wrong alternatives, with its interval."""

    mean: float
    low: float
    high: float
    items: int


@dataclass(frozen=True)
class Results:
    """What one group of raters found."""

    raters: int
    ratings: int
    raters_per_item: Mapping[int, int]  # raters → items with so many
    systems: Mapping[str, Mapping[str, SystemFigures]]  # relation → system
    gold: Mapping[str, Mapping[str, GoldFigure]]  # relation → label
    comparisons: Mapping[str, Mapping[str, list[Comparison]]]  # relation → figure
    agreement: Mapping[str, Agreement]  # all, answers, gold

    @property
    def relations(self) -> list[str]:
        """Effects before causes, as in the paper; then others by name."""
        found = sorted({*self.systems, *self.gold})
        return sorted(found, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))

    def record(self) -> dict[str, Any]:
        """As it stands in metrics.json."""
        found = asdict(self)
        for own in found["systems"].values():
            for system, figures in own.items():
                own[system] = {
                    name: {**figure, "sources": figures["sources"][name]}
                    for name, figure in figures["figures"].items()
                }
        found["raters_per_item"] = {str(raters): items for raters, items in self.raters_per_item.items()}
        return found


@dataclass(frozen=True)
class Analysis:
    """The results of the raters who count, of everyone, and how each rater worked."""

    settings: Mapping[str, Any]
    simulated: bool
    raters: tuple[RaterReport, ...]
    results: Results
    everyone: Results

    @property
    def excluded(self) -> list[RaterReport]:
        return [rater for rater in self.raters if rater.excluded]

    def record(self) -> dict[str, Any]:
        """The content of metrics.json."""
        record: dict[str, Any] = rounded(
            {
                "settings": dict(self.settings),
                "simulated": self.simulated,
                "results": self.results.record(),
                "everyone": self.everyone.record(),
                "raters": [asdict(rater) for rater in self.raters],
            }
        )
        return record


def analyse(
    study: Study,
    items: Sequence[Item],
    ratings: Sequence[Rating],
    *,
    names: Mapping[str, str],
    simulated: bool = False,
    seed: int = SEED,
) -> Analysis:
    """All figures of a study; `names` are the raters' pseudonyms by id, `ratings` the latest of each pair."""
    if not ratings:
        raise Cod3sError(
            "the study has no ratings yet",
            hint="collect some with `cod3s judge serve` or `import`; `cod3s judge simulate` rehearses on a copy",
        )
    by_id = {item.id: item for item in items}
    _check_known(ratings, by_id)
    ordered = sorted(ratings, key=lambda rating: (rating.item, names[rating.rater]))
    reports = report_raters(ordered, by_id, study.exclusion, names)
    kept = [rating for rating in ordered if not reports[rating.rater].excluded]
    results, everyone = (_results(study, items, own, seed) for own in (kept, ordered))
    return Analysis(_settings(study, seed), simulated, tuple(reports.values()), results, everyone)


def _check_known(ratings: Iterable[Rating], items: Mapping[str, Item]) -> None:
    for rating in ratings:
        if rating.item not in items:
            raise Cod3sError(
                f"the store holds a rating of {rating.item}, which is no item of this study",
                hint="name the database that belongs to the study",
            )


def _settings(study: Study, seed: int) -> dict[str, Any]:
    return {
        "study": study.name,
        "scale": f"0–{len(study.scale) - 1}",
        "raters_per_item": study.raters_per_item,
        "exclusion": asdict(study.exclusion),
        "bootstrap": RESAMPLES,
        "alpha": "Krippendorff, ordinal",
        "seed": seed,
        "cod3s": __version__,
    }


def _results(study: Study, items: Sequence[Item], ratings: Sequence[Rating], seed: int) -> Results:
    scores: dict[str, tuple[int, ...]] = defaultdict(tuple)
    for rating in ratings:
        scores[rating.item] += (rating.score,)
    rated = [item for item in items if item.kind != CHECK]
    values = _values(rated, scores)
    comparisons = {relation: _compare(own) for relation, own in values.items()}
    return Results(
        raters=len({rating.rater for rating in ratings}),
        ratings=sum(len(scores[item.id]) for item in rated),
        raters_per_item=dict(sorted(Counter(len(scores[item.id]) for item in rated).items())),
        systems={
            relation: {
                system: _summary(system, figures, comparisons[relation], seed) for system, figures in own.items()
            }
            for relation, own in values.items()
        },
        gold=_gold(rated, scores, seed),
        comparisons=comparisons,
        agreement=_agreements(rated, scores, len(study.scale), seed),
    )


def _values(items: Sequence[Item], scores: Mapping[str, tuple[int, ...]]) -> dict[str, Values]:
    """Relation → system → figure → source → value; a statement of several systems counts for each."""
    sets: dict[str, dict[str, dict[str, list[RatedAnswer]]]] = {}
    for item in items:
        for credit in item.of:
            own = sets.setdefault(item.relation, {}).setdefault(credit.system, {})
            own.setdefault(item.source, []).append(RatedAnswer(credit.rank, scores.get(item.id, ())))
    return {
        relation: {system: _by_figure(systems[system]) for system in sorted(systems)}
        for relation, systems in sorted(sets.items())
    }


def _by_figure(sets: Mapping[str, list[RatedAnswer]]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for source in sorted(sets):
        for name, value in set_figures(sets[source]).items():
            found.setdefault(name, {})[source] = value
    return {name: found[name] for name in FIGURES if name in found}


def _compare(values: Values) -> dict[str, list[Comparison]]:
    return {
        name: compare_all({system: own[name] for system, own in values.items() if name in own})
        for name in FIGURES
        if any(name in own for own in values.values())
    }


def _summary(
    system: str, values: Mapping[str, Mapping[str, float]], comparisons: Mapping[str, list[Comparison]], seed: int
) -> SystemFigures:
    figures = {}
    for name, by_source in values.items():
        own = list(by_source.values())
        low, high = bootstrap_interval(own, seed=seed)
        figures[name] = Figure(float(np.mean(own)), low, high, not beaten(system, comparisons[name]))
    return SystemFigures(figures, {name: len(own) for name, own in values.items()})


def _gold(
    items: Sequence[Item], scores: Mapping[str, tuple[int, ...]], seed: int
) -> dict[str, dict[str, GoldFigure]]:
    found: dict[str, dict[str, GoldFigure]] = {}
    for relation in sorted({item.relation for item in items}):
        for label in (RIGHT, WRONG):
            own = [
                float(np.mean(scores[item.id]))
                for item in items
                if item.label == label and item.relation == relation and scores.get(item.id)
            ]
            if own:
                low, high = bootstrap_interval(own, seed=seed)
                found.setdefault(relation, {})[label] = GoldFigure(float(np.mean(own)), low, high, len(own))
    return found


def _agreements(
    items: Sequence[Item], scores: Mapping[str, tuple[int, ...]], values: int, seed: int
) -> dict[str, Agreement]:
    """Gold items are far apart by design and raise alpha: the answers alone are the harder, fairer figure."""
    groups: dict[str, Callable[[Item], bool]] = {
        "all": lambda item: True,
        "answers": lambda item: item.kind == ANSWER,
        "gold": lambda item: bool(item.label),
    }
    found = {}
    for name, belongs in groups.items():
        own = [scores.get(item.id, ()) for item in items if belongs(item)]
        if own:
            counts = np.array([np.bincount(np.array(row, np.int64), minlength=values) for row in own])
            found[name] = agreement(counts, seed=seed)
    return found
