"""A report on each rater: how they worked, and whether their ratings count.

The rule that excludes raters is part of the study and was fixed before collection; it is only applied here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from cod3s.study.plan.folder import CHECK, RIGHT, WRONG, Exclusion, Item, Rating


@dataclass(frozen=True)
class RaterReport:
    """One rater; `reasons` are the rules that exclude their ratings, if any."""

    name: str  # a pseudonym
    ratings: int = 0  # without checks
    mean: float | None = None
    median_seconds: float | None = None  # None if no time is known, as in some imported ratings
    total_seconds: float = 0.0
    checks: int = 0
    failed_checks: int = 0
    gold_gap: float | None = None  # mean score of right minus wrong gold items
    reasons: tuple[str, ...] = ()

    @property
    def excluded(self) -> bool:
        return bool(self.reasons)


def report_raters(
    ratings: Iterable[Rating], items: Mapping[str, Item], rule: Exclusion, names: Mapping[str, str]
) -> dict[str, RaterReport]:
    """A report per rater with a rating, by id, sorted by pseudonym."""
    by_rater: dict[str, list[Rating]] = defaultdict(list)
    for rating in ratings:
        by_rater[rating.rater].append(rating)
    order = sorted(by_rater, key=names.__getitem__)
    return {rater: _report(names[rater], by_rater[rater], items, rule) for rater in order}


def _report(name: str, ratings: Sequence[Rating], items: Mapping[str, Item], rule: Exclusion) -> RaterReport:
    checks = [rating for rating in ratings if items[rating.item].kind == CHECK]
    rated = [rating for rating in ratings if items[rating.item].kind != CHECK]
    failed = sum(rating.score not in items[rating.item].expected for rating in checks)
    times = [rating.seconds for rating in rated]
    seconds = median(times) if any(times) else None
    gap = _gold_gap(rated, items)
    return RaterReport(
        name=name,
        ratings=len(rated),
        mean=fmean(rating.score for rating in rated) if rated else None,
        median_seconds=seconds,
        total_seconds=sum(rating.seconds for rating in ratings),
        checks=len(checks),
        failed_checks=failed,
        gold_gap=gap,
        reasons=tuple(_reasons(failed, seconds, gap, rule)),
    )


def _gold_gap(rated: Sequence[Rating], items: Mapping[str, Item]) -> float | None:
    right, wrong = (
        [rating.score for rating in rated if items[rating.item].label == label] for label in (RIGHT, WRONG)
    )
    return fmean(right) - fmean(wrong) if right and wrong else None


def _reasons(failed: int, seconds: float | None, gap: float | None, rule: Exclusion) -> Iterable[str]:
    if rule.max_failed_checks is not None and failed > rule.max_failed_checks:
        yield f"failed {failed} attention checks, more than {rule.max_failed_checks}"
    if rule.min_median_seconds is not None and seconds is not None and seconds < rule.min_median_seconds:
        yield f"took {seconds:.1f} s per item, less than {rule.min_median_seconds:g}"
    if rule.min_gold_gap is not None and gap is not None and gap < rule.min_gold_gap:
        yield f"rated right gold items {gap:+.2f} above wrong ones, less than {rule.min_gold_gap:+g}"
