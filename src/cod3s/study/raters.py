"""Raters and their ratings: ids, tokens and pseudonyms, how each rater worked, and whom the study's rule excludes.

Only hashes of tokens are stored. A token has 192 random bits, so a plain hash cannot be reversed by guessing.
"""

import hashlib
import hmac
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from statistics import fmean, median

from cod3s.errors import Cod3sError
from cod3s.study.folder import CHECK, RIGHT, WRONG, Exclusion, Item, Study

PAGE, PROLIFIC, IMPORTED = "page", "prolific", "import"
"""Where raters come from."""
_CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that look alike


@dataclass(frozen=True)
class Rater:
    """Someone who rates. `external` is their id elsewhere, such as on Prolific."""

    id: str
    origin: str
    created: str
    name: str = ""
    external: str = ""
    session: str = ""
    finished: str = ""


@dataclass(frozen=True)
class Rating:
    """A score by a rater. `key` names the click: a key that is sent twice is saved once."""

    rater: str
    item: str
    score: int
    seconds: float
    at: str  # UTC, ISO 8601
    revision: int = 1  # 1 for the first score, 2 after the first change …
    key: str = ""


@dataclass(frozen=True)
class RaterReport:
    """How a rater worked; `reasons` are the rules that exclude their ratings, if any."""

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


def new_token() -> str:
    """A token that nobody can guess and that fits in a link."""
    return secrets.token_urlsafe(24)


def new_id() -> str:
    """A random id that reveals nothing."""
    return secrets.token_hex(8)


def new_code() -> str:
    """A completion code that people can copy by hand."""
    return "".join(secrets.choice(_CODE_LETTERS) for _ in range(8))


def token_hash(token: str) -> str:
    """The hash that is stored instead of `token`."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def matches(token: str, stored: str) -> bool:
    """Whether `token` has the hash `stored`, compared in constant time."""
    return hmac.compare_digest(token_hash(token), stored)


def timestamp(moment: datetime | None = None) -> str:
    """A moment, by default now, as it is stored: UTC, ISO 8601, so that sorting the texts sorts by time."""
    moment = moment or datetime.now(timezone.utc)
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def pseudonyms(study: Study, raters: Iterable[Rater]) -> dict[str, str]:
    """The pseudonym of every rater, by id: the same in every export and report of the study.

    It is made from the random id in the store, which no export shows, so nobody can test whether a name or a
    Prolific id belongs to it.
    """
    return {rater.id: f"r-{token_hash(f'{study.id} {rater.id}')[:10]}" for rater in raters}


def require_known_items(ratings: Iterable[Rating], items: Mapping[str, Item]) -> None:
    """Raise an error if a rating is of an item that the study does not have."""
    if unknown := [rating.item for rating in ratings if rating.item not in items]:
        raise Cod3sError(
            f"the store contains a rating of {unknown[0]}, which is not an item of this study",
            hint="give the database that belongs to the study, or restore its items.jsonl",
        )


def report_raters(
    ratings: Iterable[Rating], items: Mapping[str, Item], rule: Exclusion, names: Mapping[str, str]
) -> dict[str, RaterReport]:
    """A report per rater with a rating, by id, sorted by pseudonym; all ratings must be of `items`."""
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
    right, wrong = (
        [rating.score for rating in rated if items[rating.item].label == label] for label in (RIGHT, WRONG)
    )
    gap = fmean(right) - fmean(wrong) if right and wrong else None
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


def _reasons(failed: int, seconds: float | None, gap: float | None, rule: Exclusion) -> Iterator[str]:
    if rule.max_failed_checks is not None and failed > rule.max_failed_checks:
        yield f"failed {failed} attention checks, more than {rule.max_failed_checks}"
    if rule.min_median_seconds is not None and seconds is not None and seconds < rule.min_median_seconds:
        yield f"took {seconds:.1f} s per item, less than {rule.min_median_seconds:g}"
    if rule.min_gold_gap is not None and gap is not None and gap < rule.min_gold_gap:
        yield f"rated right gold items {gap:+.2f} above wrong ones, less than {rule.min_gold_gap:+g}"
