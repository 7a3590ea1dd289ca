"""Analyse the ratings of a study: the figures behind metrics.json, the tables, the plot and the page.

The order of the ratings does not matter. Attention checks count in no figure except that of the checks themselves.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cod3s import __version__
from cod3s.errors import Cod3sError
from cod3s.evaluate.paper import is_copa_dev
from cod3s.evaluate.summary import Figure, Interval, figure_of, in_paper_order, rounded
from cod3s.metrics.significance import RESAMPLES, Comparison, bootstrap_interval, compare_all
from cod3s.options import SEED
from cod3s.study.figures import FIGURES, Agreement, RatedAnswer, agreement, set_figures
from cod3s.study.folder import ANSWER, CHECK, RIGHT, WRONG, Item, Study
from cod3s.study.raters import RaterReport, Rating, report_raters, require_known_items

Values = dict[str, dict[str, float]]
"""System → source → value."""
Scores = Mapping[str, tuple[int, ...]]
"""The scores of every rated item."""


@dataclass(frozen=True)
class SystemFigure(Figure):
    """A figure of a system on a relation, and the number of sources behind it."""

    sources: int


@dataclass(frozen=True)
class GoldFigure(Interval):
    """The mean score of the right or of the wrong alternatives."""

    items: int


@dataclass(frozen=True)
class Results:
    """The results of a group of raters."""

    raters: int
    ratings: int
    raters_per_item: Mapping[int, int]  # number of raters → number of items
    most_answers: int  # rated answers per source, at most: the figures' labels follow it
    systems: Mapping[str, Mapping[str, Mapping[str, SystemFigure]]]  # relation → system → figure
    gold: Mapping[str, Mapping[str, GoldFigure]]  # relation → label
    comparisons: Mapping[str, Mapping[str, list[Comparison]]]  # relation → figure
    agreement: Mapping[str, Agreement]  # all, answers, gold
    is_copa_dev: bool = False  # whether the paper's figures are about the same sources

    @property
    def relations(self) -> list[str]:
        """Effects before causes, as in the paper; then others by name."""
        return in_paper_order(sorted({*self.systems, *self.gold}))


@dataclass(frozen=True)
class Analysis:
    """The results without excluded raters, those of everyone, and a report on each rater."""

    settings: Mapping[str, Any]
    simulated: Mapping[str, float] | None  # the true levels behind simulated ratings; None for those of people
    results: Results
    everyone: Results
    raters: tuple[RaterReport, ...]

    @property
    def excluded(self) -> list[RaterReport]:
        return [rater for rater in self.raters if rater.excluded]

    def record(self) -> dict[str, Any]:
        """The content of metrics.json."""
        record: dict[str, Any] = rounded(asdict(self))
        return record


def analyse(
    study: Study,
    items: Sequence[Item],
    ratings: Sequence[Rating],
    *,
    names: Mapping[str, str],
    simulated: Mapping[str, float] | None = None,
    seed: int = SEED,
) -> Analysis:
    """All figures of a study; `names` are pseudonyms by rater id, `ratings` the latest per rater and item."""
    if not ratings:
        raise Cod3sError(
            "the study has no ratings yet",
            hint="collect some with `cod3s study serve` or `import`; rehearse with `analyse --simulate 12`",
        )
    by_id = {item.id: item for item in items}
    require_known_items(ratings, by_id)
    ordered = sorted(ratings, key=lambda rating: (rating.item, names[rating.rater]))
    reports = report_raters(ordered, by_id, study.exclusion, names)
    counted = [rating for rating in ordered if not reports[rating.rater].excluded]
    settings = {
        "study": study.name,
        "scale": f"0–{study.top_score}",
        "raters_per_item": study.raters_per_item,
        "exclusion": asdict(study.exclusion),
        "bootstrap": RESAMPLES,
        "alpha": "Krippendorff, ordinal",
        "seed": seed,
        "cod3s": __version__,
    }
    results, everyone = (_results(study, items, group, seed) for group in (counted, ordered))
    return Analysis(settings, simulated, results, everyone, tuple(reports.values()))


def _results(study: Study, items: Sequence[Item], ratings: Sequence[Rating], seed: int) -> Results:
    scores: dict[str, tuple[int, ...]] = defaultdict(tuple)
    for rating in ratings:
        scores[rating.item] += (rating.score,)
    rated = [item for item in items if item.kind != CHECK]
    names: dict[str, set[str]] = defaultdict(set)
    answers: Counter[tuple[str, str, str]] = Counter()
    for item in rated:
        for credit in item.credits:
            names[item.relation].add(credit.system)
            answers[item.relation, item.source, credit.system] += 1
    values = _values(rated, scores)
    comparisons = {
        relation: {name: compare_all(systems) for name, systems in figures.items()}
        for relation, figures in values.items()
    }
    return Results(
        raters=len({rating.rater for rating in ratings}),
        ratings=sum(len(scores[item.id]) for item in rated),
        raters_per_item=dict(sorted(Counter(len(scores[item.id]) for item in rated).items())),
        most_answers=max(answers.values(), default=0),
        systems={
            relation: _systems(names[relation], figures, comparisons[relation], seed)
            for relation, figures in values.items()
        },
        gold=_gold(rated, scores, seed),
        comparisons=comparisons,
        agreement=_agreements(rated, scores, len(study.scale), seed),
        is_copa_dev=is_copa_dev((item.relation, item.source) for item in rated),
    )


def _values(items: Sequence[Item], scores: Scores) -> dict[str, dict[str, Values]]:
    """Relation → figure → system → source → value; a statement of several systems counts for each."""
    sets: dict[tuple[str, str, str], list[RatedAnswer]] = defaultdict(list)
    for item in items:
        for credit in item.credits:
            answer = RatedAnswer(credit.rank, scores.get(item.id, ()))
            sets[item.relation, credit.system, item.source].append(answer)
    by_set = {key: set_figures(answers) for key, answers in sorted(sets.items())}
    values: dict[str, dict[str, Values]] = {relation: {} for relation, _, _ in by_set}
    for name in FIGURES:
        for (relation, system, source), figures in by_set.items():
            if name in figures:
                values[relation].setdefault(name, {}).setdefault(system, {})[source] = figures[name]
    return values


def _systems(
    names: Iterable[str], values: Mapping[str, Values], comparisons: Mapping[str, list[Comparison]], seed: int
) -> dict[str, dict[str, SystemFigure]]:
    systems: dict[str, dict[str, SystemFigure]] = {name: {} for name in sorted(names)}
    for name, by_system in values.items():
        for system, by_source in by_system.items():
            figure = figure_of(system, by_source, comparisons[name], seed)
            systems[system][name] = SystemFigure(**vars(figure), sources=len(by_source))
    return systems


def _gold(items: Sequence[Item], scores: Scores, seed: int) -> dict[str, dict[str, GoldFigure]]:
    figures: dict[str, dict[str, GoldFigure]] = {}
    for relation in sorted({item.relation for item in items}):
        for label in (RIGHT, WRONG):
            chosen = [item for item in items if item.label == label and item.relation == relation]
            means = [float(np.mean(scores[item.id])) for item in chosen if scores.get(item.id)]
            if means:
                low, high = bootstrap_interval(means, seed=seed)
                figures.setdefault(relation, {})[label] = GoldFigure(float(np.mean(means)), low, high, len(means))
    return figures


def _agreements(items: Sequence[Item], scores: Scores, values: int, seed: int) -> dict[str, Agreement]:
    """Gold items are far apart by design and raise alpha; the answers alone give the harder, fairer figure."""
    groups = {
        "all": items,
        "answers": [item for item in items if item.kind == ANSWER],
        "gold": [item for item in items if item.label],
    }
    agreements = {}
    for name, group in groups.items():
        rows = [np.bincount(np.array(scores.get(item.id, ()), np.int64), minlength=values) for item in group]
        if rows:
            agreements[name] = agreement(np.array(rows), seed=seed)
    return agreements
