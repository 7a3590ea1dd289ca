"""Ratings that come from elsewhere: what a reader found in, checked against the study, saved all or not at all.

Readers know formats and yield `Incoming` and `BadRow` records; this module knows the study and the store. A file
that is imported twice adds nothing: what the store holds is left out, and so is an event that was imported before.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.judge.collect.store import Store, timestamp
from cod3s.judge.collect.tokens import new_id, token_hash
from cod3s.judge.exchange.pseudonyms import SIMULATED, is_simulated, pseudonyms
from cod3s.judge.study.study import Item, Rater, Rating, Study

IMPORTED = "import"
"""The origin of imported raters."""
_NAMED = 5  # bad rows that a message names


@dataclass(frozen=True)
class Incoming:
    """One rating as a file has it; `event` tells apart the times that a rater met the same item."""

    place: str  # for messages, such as "line 7"
    rater: str
    item: str
    score: str
    seconds: float = 0.0  # 0 where the file does not say
    event: str = ""


@dataclass(frozen=True)
class BadRow:
    """What cannot be imported, and why."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    ratings: int  # in the file, and right
    added: int  # that the store did not hold
    raters: int
    bad: tuple[BadRow, ...]


def import_ratings(
    store: Store,
    study: Study,
    items: Sequence[Item],
    rows: Iterable[Incoming | BadRow],
    *,
    skip_bad: bool = False,
) -> Imported:
    """Save the ratings; with a bad row among them none is saved, unless those are to be skipped."""
    good, bad = check(rows, study, items)
    if bad and not skip_bad:
        raise FileFormatError(
            f"{len(bad)} of {len(good) + len(bad)} ratings cannot be imported, so none was: {named(bad)}",
            hint="mend them, or leave them out with --skip-bad",
        )
    if not good:
        raise FileFormatError("there is no rating to import" + (f": {named(bad)}" if bad else ""))
    known = store.raters()
    _refuse_mixture(known, good)
    here = _ids(study, known)
    raters = {
        name: Rater(new_id(), SIMULATED if is_simulated(name) else IMPORTED, timestamp(), external=name)
        for name in dict.fromkeys(row.rater for row in good)
        if name not in here
    }
    ids = {**here, **{name: rater.id for name, rater in raters.items()}}
    held = {(rating.rater, rating.item): rating.score for rating in store.ratings()}
    new = [_rating(row, ids[row.rater]) for row in good]
    new = [rating for rating in new if held.get((rating.rater, rating.item)) != rating.score]
    return Imported(len(good), store.add(raters.values(), new), len({row.rater for row in good}), tuple(bad))


def check(
    rows: Iterable[Incoming | BadRow], study: Study, items: Sequence[Item]
) -> tuple[list[Incoming], list[BadRow]]:
    """The ratings that fit the study, and the rest with reasons."""
    known = {item.id for item in items}
    seen: set[tuple[str, str, str]] = set()
    good: list[Incoming] = []
    bad: list[BadRow] = []
    for row in rows:
        if isinstance(row, BadRow):
            bad.append(row)
            continue
        reason = _fault(row, known, len(study.scale) - 1)
        own = (row.rater, row.item, row.event)
        if not reason and own in seen:
            reason = f"{row.rater} rates {row.item} a second time"
        if reason:
            bad.append(BadRow(row.place, reason))
        else:
            seen.add(own)
            good.append(row)
    return good, bad


def _ids(study: Study, known: Sequence[Rater]) -> dict[str, str]:
    """The raters in the store by the names that a file may have for them: and by those of our own export."""
    imported = {rater.external: rater.id for rater in known if rater.origin in (IMPORTED, SIMULATED)}
    return {**{name: rater for rater, name in pseudonyms(study, known).items()}, **imported}


def _refuse_mixture(known: Sequence[Rater], rows: Sequence[Incoming]) -> None:
    """Simulated ratings stay among themselves, and stay simulated."""
    simulated = {rater.origin == SIMULATED for rater in known} | {is_simulated(row.rater) for row in rows}
    if len(simulated) > 1:
        raise Cod3sError(
            "simulated ratings and those of people may not be mixed",
            hint="import into a store of its own, by --database",
        )


def named(bad: Sequence[BadRow]) -> str:
    """The first bad rows in words, and how many more there are."""
    more = f"; and {len(bad) - _NAMED} more" if len(bad) > _NAMED else ""
    return "; ".join(map(str, bad[:_NAMED])) + more


def _fault(row: Incoming, items: set[str], top: int) -> str:
    if not row.rater:
        return "no rater is named"
    if row.item not in items:
        return f"{row.item!r} is no item of this study"
    score = _score(row.score)
    if score is None:
        return f"{row.score!r} is no score"
    if not 0 <= score <= top:
        return f"the score {score} is not between 0 and {top}"
    if not 0 <= row.seconds < float("inf"):
        return f"{row.seconds} seconds cannot be"
    return ""


def _score(text: str) -> int | None:
    """A whole number, also as a spreadsheet may have rewritten it (3.0)."""
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else None


def _rating(row: Incoming, rater: str) -> Rating:
    score = _score(row.score)
    assert score is not None  # looked at by `check`
    key = token_hash(f"{row.event} {score}") if row.event else new_id()
    return Rating(rater, row.item, score, row.seconds, timestamp(), key=key)
