"""What the administrator sees while a study runs: coverage of the items, the work of each rater, plain means.

The analysis with intervals and tests is `cod3s judge analyse`.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from cod3s.study.collect.rating_store import Store
from cod3s.study.plan.folder import CHECK, Item, Rating, Study
from cod3s.study.results.raters import RaterReport, report_raters

_SHOWN = ("ratings", "mean", "median_seconds", "checks", "failed_checks", "reasons")  # of each rater's report


def study_progress(study: Study, items: Sequence[Item], store: Store) -> dict[str, Any]:
    """The counts of a running study as JSON values."""
    ratings, by_id = store.ratings(), {item.id: item for item in items}
    rated = [item for item in items if item.kind != CHECK]
    load = Counter(rating.item for rating in ratings if by_id[rating.item].kind != CHECK)
    wanted = len(rated) * study.raters_per_item
    return {
        "name": study.name,
        "items": len(rated),
        "checks": len(items) - len(rated),
        "raters_per_item": study.raters_per_item,
        "ratings": load.total(),
        "wanted": wanted,
        "done": sum(min(load[item.id], study.raters_per_item) for item in rated) / wanted if wanted else 1.0,
        "coverage": dict(sorted(Counter(load[item.id] for item in rated).items())),
        "raters": _raters(study, by_id, store, ratings),
        "means": _means(by_id, ratings),
    }


def _raters(study: Study, items: dict[str, Item], store: Store, ratings: list[Rating]) -> list[dict[str, Any]]:
    raters = store.raters()
    reports = report_raters(ratings, items, study.exclusion, {rater.id: rater.id for rater in raters})
    last = {rating.rater: rating.at for rating in sorted(ratings, key=lambda rating: rating.at)}
    rows = []
    for rater in raters:
        report = reports.get(rater.id, RaterReport(rater.id))
        rows.append(
            {
                "name": rater.name or rater.external or rater.id,
                "origin": rater.origin,
                "joined": rater.created,
                "last": last.get(rater.id, ""),
                "finished": rater.finished,
                **{name: getattr(report, name) for name in _SHOWN},
            }
        )
    return rows


def _means(items: dict[str, Item], ratings: list[Rating]) -> list[dict[str, Any]]:
    """The mean score per relation of each system's answers and of the gold alternatives."""
    scores: dict[tuple[str, str], list[int]] = defaultdict(list)
    for rating in ratings:
        item = items[rating.item]
        for name in {credit.system for credit in item.of} | ({f"gold, {item.label}"} if item.label else set()):
            scores[item.relation, name].append(rating.score)
    return [
        {"relation": relation, "system": name, "mean": fmean(values), "ratings": len(values)}
        for (relation, name), values in sorted(scores.items())
    ]
