"""Import ratings from elsewhere: check them against the study, then save all or none.

Readers of file formats yield `Incoming` and `BadRow` records. Importing a file twice adds nothing: ratings that
the store holds are skipped, and so are events that were imported before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.study.collect.rating_store import Store
from cod3s.study.plan.folder import Item, Rater, Rating, Study
from cod3s.study.plan.identities import SIMULATED, is_simulated, new_id, pseudonyms, timestamp, token_hash

IMPORTED = "import"
"""The origin of imported raters."""
_NAMED = 5  # bad rows that a message lists


@dataclass(frozen=True)
class Incoming:
    """A rating in a file; `event` tells repeated ratings of an item by the same rater apart."""

    location: str  # for messages, such as "line 7"
    rater: str
    item: str
    score: str
    seconds: float = 0.0  # 0 if unknown
    event: str = ""


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be imported, and why."""

    location: str
    reason: str

    def __str__(self) -> str:
        return f"{self.location}: {self.reason}"


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    ratings: int  # in the file that fit the study
    added: int  # those that the store did not hold yet
    raters: int
    bad: tuple[BadRow, ...]


def import_ratings(
    store: Store, study: Study, items: Sequence[Item], rows: Iterable[Incoming | BadRow], *, skip_bad: bool = False
) -> Imported:
    """Save the ratings; if a row is bad, nothing is saved, unless bad rows are to be skipped."""
    good, bad = check(rows, study, items)
    if bad and not skip_bad:
        raise FileFormatError(
            f"{len(bad)} of {len(good) + len(bad)} ratings cannot be imported, so none were: {named(bad)}",
            hint="correct them, or skip them with --skip-bad",
        )
    if not good:
        raise FileFormatError("the file has no ratings to import" + (f": {named(bad)}" if bad else ""))
    stored_raters = store.raters()
    _check_not_mixed(stored_raters, good)
    stored_ids = _ids(study, stored_raters)
    raters = {
        name: Rater(new_id(), SIMULATED if is_simulated(name) else IMPORTED, timestamp(), external=name)
        for name in dict.fromkeys(row.rater for row in good)
        if name not in stored_ids
    }
    ids = {**stored_ids, **{name: rater.id for name, rater in raters.items()}}
    stored_scores = {(rating.rater, rating.item): rating.score for rating in store.ratings()}
    new = [_rating(row, ids[row.rater]) for row in good]
    new = [rating for rating in new if stored_scores.get((rating.rater, rating.item)) != rating.score]
    return Imported(len(good), store.add(raters.values(), new), len({row.rater for row in good}), tuple(bad))


def check(
    rows: Iterable[Incoming | BadRow], study: Study, items: Sequence[Item]
) -> tuple[list[Incoming], list[BadRow]]:
    """The ratings that fit the study, and the others with reasons."""
    item_ids = {item.id for item in items}
    seen: set[tuple[str, str, str]] = set()
    good: list[Incoming] = []
    bad: list[BadRow] = []
    for row in rows:
        if isinstance(row, BadRow):
            bad.append(row)
            continue
        reason = _fault(row, item_ids, len(study.scale) - 1)
        event = (row.rater, row.item, row.event)
        if not reason and event in seen:
            reason = f"{row.rater} rates {row.item} a second time"
        if reason:
            bad.append(BadRow(row.location, reason))
        else:
            seen.add(event)
            good.append(row)
    return good, bad


def _ids(study: Study, raters: Sequence[Rater]) -> dict[str, str]:
    """The ids of stored raters by the names that a file may use: imported names, and pseudonyms of our exports."""
    imported = {rater.external: rater.id for rater in raters if rater.origin in (IMPORTED, SIMULATED)}
    return {**{name: rater for rater, name in pseudonyms(study, raters).items()}, **imported}


def _check_not_mixed(raters: Sequence[Rater], rows: Sequence[Incoming]) -> None:
    """Simulated ratings never share a store with those of people."""
    simulated = {rater.origin == SIMULATED for rater in raters} | {is_simulated(row.rater) for row in rows}
    if len(simulated) > 1:
        raise Cod3sError(
            "simulated ratings cannot be mixed with those of people",
            hint="import into a separate store: --database URL",
        )


def named(bad: Sequence[BadRow]) -> str:
    """A list of the first bad rows, and how many more there are."""
    more = f"; and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    return "; ".join(map(str, bad[:_NAMED])) + more


def _fault(row: Incoming, items: set[str], top: int) -> str:
    if not row.rater:
        return "the rater is missing"
    if row.item not in items:
        return f"{row.item!r} is not an item of this study"
    score = _score(row.score)
    if score is None:
        return f"{row.score!r} is not a whole number"
    if not 0 <= score <= top:
        return f"the score {score} is not between 0 and {top}"
    if not 0 <= row.seconds < float("inf"):
        return f"{row.seconds} seconds is impossible"
    return ""


def _score(text: str) -> int | None:
    """A whole number, also in the form that a spreadsheet may give it (3.0)."""
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else None


def _rating(row: Incoming, rater: str) -> Rating:
    score = _score(row.score)
    assert score is not None  # `check` has made sure
    key = token_hash(f"{row.event} {score}") if row.event else new_id()
    return Rating(rater, row.item, score, row.seconds, timestamp(), key=key)
