"""What raters can do (join, read a statement, rate it, continue where they stopped), and what administrators see.

Raters see statements at positions 1, 2, 3 … of their order, and never a system, a kind or the id of an item.
"""

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from statistics import fmean
from typing import Any

from cod3s.errors import Cod3sError
from cod3s.study.folder import CHECK, Item, Study
from cod3s.study.raters import (
    PAGE,
    PROLIFIC,
    Rater,
    RaterReport,
    Rating,
    new_id,
    new_token,
    report_raters,
    timestamp,
    token_hash,
)
from cod3s.study.store import AssignedItem, Store
from cod3s.text import clean
from cod3s.web.error_replies import RefusedError

_RETURN_LINK = "https://app.prolific.com/submissions/complete?cc={code}"
_SHOWN = ("ratings", "mean", "median_seconds", "checks", "failed_checks", "reasons")  # of each rater's report


@dataclass(frozen=True)
class Assignment:
    """Who rates what: each rater has their own order, with checks spread through it, least rated items first.

    `items` and `checks` are ids. The store calls `next` inside the transaction that saves the choice.
    """

    seed: int
    raters_per_item: int
    per_rater: int
    items: tuple[str, ...]
    checks: tuple[str, ...]

    @property
    def total(self) -> int:
        """How many statements a rater gets, as long as there are enough to rate."""
        return min(self.per_rater, len(self.items)) + len(self.checks)

    def next(self, rater: str, assigned: Sequence[str], load: Mapping[str, int]) -> str | None:
        """The next item of `rater`, or None at the end.

        `assigned` are the rater's items so far, `load` is the number of raters per item. No item gets extra raters
        until every item has enough; until then, a rater who has only such items left is done.
        """
        position = len(assigned) + 1
        if position > self.total:
            return None
        if position in self.check_positions(rater):
            seen = sum(item in self.checks for item in assigned)
            return sorted(self.checks, key=lambda check: self._draw(rater, check))[seen]
        lacking = {item for item in self.items if load.get(item, 0) < self.raters_per_item}
        free = (lacking or set(self.items)).difference(assigned)
        return min(free, key=lambda item: (load.get(item, 0), self._draw(rater, item)), default=None)

    def check_positions(self, rater: str) -> set[int]:
        """The positions of the checks for `rater`, from 1: one at random in each of as many equal stretches."""
        generator = random.Random(f"{self.seed} {rater} positions")
        number = len(self.checks)
        bounds = [round(stretch * self.total / number) for stretch in range(number + 1)] if number else []
        return {generator.randrange(low, high) + 1 for low, high in pairwise(bounds)}

    def _draw(self, rater: str, item: str) -> bytes:
        return hashlib.sha256(f"{self.seed} {rater} {item}".encode()).digest()


def assignment_of(study: Study, items: Sequence[Item]) -> Assignment:
    """The rule of `study` for its items."""
    return Assignment(
        seed=study.seed,
        raters_per_item=study.raters_per_item,
        per_rater=study.per_rater,
        items=tuple(item.id for item in items if item.kind != CHECK),
        checks=tuple(item.id for item in items if item.kind == CHECK),
    )


@dataclass(frozen=True)
class Shown:
    """A statement as its rater sees it."""

    position: int
    statement: str
    score: int | None
    assigned_at: str  # a statement left open for long is taken back and may be replaced


@dataclass(frozen=True)
class Ending:
    """The completion code, and the link that leads back to Prolific, which is empty for others."""

    code: str
    link: str


@dataclass(frozen=True)
class Standing:
    """A rater's progress. `current` is the statement to rate next; at the end, it is None and `ending` is set."""

    name: str
    rated: int
    total: int
    current: Shown | None
    ending: Ending | None


class RatingService:
    """The study as its raters see it; safe to share between threads."""

    def __init__(self, study: Study, items: Sequence[Item], store: Store) -> None:
        self.study = study
        self.assignment = assignment_of(study, items)
        self._statements = {item.id: item.statement for item in items}
        self._store = store

    def join(self, name: str) -> str:
        """Admit someone by name, and return the token of their link. Joining twice makes two raters."""
        return self._admit(Rater(new_id(), PAGE, timestamp(), name=clean(name)))

    def join_from_prolific(self, participant: str, session: str) -> str:
        """Admit a participant from Prolific, who stays the same rater however often they come."""
        return self._admit(Rater(new_id(), PROLIFIC, timestamp(), external=participant, session=session))

    def rater(self, token: str) -> Rater | None:
        """The rater to whom the token belongs."""
        return self._store.rater_of(token_hash(token))

    def show(self, rater: Rater, position: int) -> Shown:
        """The statement at a position that the rater has reached, with the score they gave."""
        return self._shown(self._at(rater, position))

    def rate(
        self, rater: Rater, position: int, *, score: int, seconds: float, key: str, assigned_at: str = ""
    ) -> Standing:
        """Save a score and continue; when this returns, it is on the disk. A `key` sent again changes nothing.

        `assigned_at` comes from the statement that was shown: if another has replaced it, nothing is saved.
        """
        if score not in range(len(self.study.scale)):
            raise Cod3sError(f"the score {score} is not on the scale from 0 to {self.study.top_score}")
        assigned = self._at(rater, position)
        if assigned_at and assigned_at != assigned.at:
            raise RefusedError(
                409,
                "this statement was open for too long and went to someone else",
                hint="rate the statement that is shown now",
            )
        return self.standing(rater, Rating(rater.id, assigned.item, score, seconds, timestamp(), key=key))

    def standing(self, rater: Rater, after: Rating | None = None) -> Standing:
        """The progress of `rater`, once the rating `after` is saved; assigns the next statement if needed."""

        def choose(assigned: Sequence[str], load: Mapping[str, int]) -> str | None:
            # A rater who has received the code is done, even if an item has become free since.
            return None if rater.finished else self.assignment.next(rater.id, assigned, load)

        free_before = timestamp(datetime.now(timezone.utc) - timedelta(minutes=self.study.claim_minutes))
        current = self._store.assign_next(rater.id, choose, free_before=free_before, after=after)
        assigned = self._store.assigned(rater.id)
        rated = sum(item.score is not None for item in assigned)
        if current is not None:
            return Standing(rater.name, rated, self.assignment.total, self._shown(current), None)
        if not rater.finished:
            self._store.finish(rater.id)
        code = self.study.completion_code
        link = _RETURN_LINK.format(code=code) if rater.origin == PROLIFIC else ""
        return Standing(rater.name, rated, len(assigned), None, Ending(code, link))

    def _admit(self, rater: Rater) -> str:
        token = new_token()
        self._store.admit(rater, token_hash(token))
        return token

    def _at(self, rater: Rater, position: int) -> AssignedItem:
        assigned = self._store.assigned(rater.id)
        if not 1 <= position <= len(assigned):
            raise RefusedError(
                404, f"statement {position} has not been reached", hint="rate those before it first"
            )
        return assigned[position - 1]

    def _shown(self, assigned: AssignedItem) -> Shown:
        return Shown(assigned.position, self._statements[assigned.item], assigned.score, assigned.at)


def study_progress(study: Study, items: Sequence[Item], store: Store) -> dict[str, Any]:
    """The counts of a running study as JSON values; ratings of items that it does not have are only counted.

    The analysis with intervals and tests is `cod3s study analyse`.
    """
    stored, by_id = store.ratings(), {item.id: item for item in items}
    ratings = [rating for rating in stored if rating.item in by_id]
    rated = [item for item in items if item.kind != CHECK]
    load = Counter(rating.item for rating in ratings if by_id[rating.item].kind != CHECK)
    wanted = len(rated) * study.raters_per_item
    return {
        "name": study.name,
        "items": len(rated),
        "checks": len(items) - len(rated),
        "raters_per_item": study.raters_per_item,
        "ratings": load.total(),
        "unknown": len(stored) - len(ratings),
        "wanted": wanted,
        "done": sum(min(load[item.id], study.raters_per_item) for item in rated) / wanted if wanted else 1.0,
        "coverage": dict(sorted(Counter(load[item.id] for item in rated).items())),
        "raters": _rater_rows(study, by_id, store.raters(), ratings),
        "means": _means(by_id, ratings),
    }


def _rater_rows(
    study: Study, items: Mapping[str, Item], raters: Sequence[Rater], ratings: Sequence[Rating]
) -> list[dict[str, Any]]:
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


def _means(items: Mapping[str, Item], ratings: Sequence[Rating]) -> list[dict[str, Any]]:
    """The mean score per relation of each system's answers and of the gold alternatives."""
    scores: dict[tuple[str, str], list[int]] = defaultdict(list)
    for rating in ratings:
        item = items[rating.item]
        gold = {f"gold, {item.label}"} if item.label else set()
        for name in {credit.system for credit in item.credits} | gold:
            scores[item.relation, name].append(rating.score)
    return [
        {"relation": relation, "system": name, "mean": fmean(values), "ratings": len(values)}
        for (relation, name), values in sorted(scores.items())
    ]
