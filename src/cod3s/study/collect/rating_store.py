"""The store of a study: its raters, the items assigned to each, and their ratings with every revision.

Every method is a transaction: when it returns, what it wrote is on the disk.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from cod3s.errors import Cod3sError
from cod3s.study.collect.database import (
    ASSIGNMENTS,
    HISTORY,
    RATERS,
    RATINGS,
    STUDIES,
    TOKENS,
    Database,
    open_database,
)
from cod3s.study.plan.folder import Rater, Rating, Study
from cod3s.study.plan.identities import timestamp

DATABASE_FILE = "ratings.sqlite"
_WITH_RATINGS = ASSIGNMENTS.outerjoin(
    RATINGS, and_(RATINGS.c.rater == ASSIGNMENTS.c.rater, RATINGS.c.item == ASSIGNMENTS.c.item)
)

Choose = Callable[[Sequence[str], Mapping[str, int]], str | None]
"""Takes a rater's items so far and the number of raters per item; returns the next item, or None for no more."""


@dataclass(frozen=True)
class AssignedItem:
    """An item that was assigned to a rater, and how they rated it."""

    item: str
    position: int  # in the rater's order, from 1
    at: str
    score: int | None = None  # None until rated


def database_url(folder: Path, url: str = "") -> str:
    """The database of the study in `folder`: `url`, or by default a SQLite file in the folder."""
    return url or f"sqlite:///{(folder / DATABASE_FILE).resolve()}"


def open_store(url: str, study: Study) -> "Store":
    """The store at `url`, created if missing; an error if it holds the ratings of another study."""
    database = open_database(url)
    with database.writing() as connection:
        stored_id = connection.execute(select(STUDIES.c.id)).scalar()
        if stored_id is None:
            connection.execute(insert(STUDIES).values(id=study.id))
        elif stored_id != study.id:
            database.close()
            raise Cod3sError(
                "the database holds the ratings of another study",
                hint="use a separate database for each study: --database URL",
            )
    return Store(database)


class Store:
    """An open store; use it as a context manager or call `close`. Safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def admit(self, rater: Rater, token_hash: str) -> Rater:
        """`rater`, or the earlier rater with the same origin and external id; the token works for either."""
        with self._database.writing() as connection:
            admitted = _admit(connection, rater)
            connection.execute(insert(TOKENS).values(hash=token_hash, rater=admitted.id))
        return admitted

    def rater_of(self, token_hash: str) -> Rater | None:
        """The rater whose token has this hash. Looking up a hash leaks nothing about the token through timing."""
        query = select(RATERS).join(TOKENS).where(TOKENS.c.hash == token_hash)
        with self._database.reading() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else _rater(row)

    def raters(self) -> list[Rater]:
        """All raters in order of arrival."""
        with self._database.reading() as connection:
            rows = connection.execute(select(RATERS).order_by(RATERS.c.created, RATERS.c.id)).mappings().all()
        return [_rater(row) for row in rows]

    def assigned(self, rater: str) -> list[AssignedItem]:
        """The items assigned to `rater`, in order; only the last may be unrated."""
        with self._database.reading() as connection:
            return _assigned(connection, rater)

    def assign_next(
        self, rater: str, choose: Choose, *, free_before: str, after: Rating | None = None
    ) -> AssignedItem | None:
        """The item that `rater` rates next: their open item, or the choice of `choose`; None for no more.

        The rating `after`, if any, is saved first, in the same transaction. Items count as taken if
        they are rated or were assigned since `free_before`. If the rater's open item was assigned before that,
        the choice is made again, because others may have rated it in the meantime.
        """
        with self._database.writing() as connection:
            if after is not None:
                _rate(connection, after)
            assigned = _assigned(connection, rater)
            if assigned and assigned[-1].score is None:
                if assigned[-1].at >= free_before:
                    return assigned[-1]
                taken_back = and_(ASSIGNMENTS.c.rater == rater, ASSIGNMENTS.c.item == assigned.pop().item)
                connection.execute(delete(ASSIGNMENTS).where(taken_back))
            item = choose([earlier.item for earlier in assigned], _load(connection, free_before))
            if item is None:
                return None
            new = AssignedItem(item, len(assigned) + 1, timestamp())
            row = {"rater": rater, "item": new.item, "place": new.position, "at": new.at}
            connection.execute(insert(ASSIGNMENTS).values(row))
        return new

    def add(self, raters: Iterable[Rater], ratings: Iterable[Rating]) -> int:
        """Save raters and ratings from elsewhere, all or none, and return how many of the ratings were new.

        A rater who is stored already, by id or by origin and external id, is not added again; ratings refer to
        their rater by the id in `raters`. Give every rating a key, so that adding it twice saves it once.
        """
        with self._database.writing() as connection:
            ids = {rater.id: _admit(connection, rater).id for rater in raters}
            added = 0
            for rating in ratings:
                added += _rate(connection, replace(rating, rater=ids.get(rating.rater, rating.rater)))
        return added

    def finish(self, rater: str) -> None:
        """Record that `rater` has reached the end; only the first time counts."""
        with self._database.writing() as connection:
            unfinished = and_(RATERS.c.id == rater, RATERS.c.finished == "")
            connection.execute(update(RATERS).where(unfinished).values(finished=timestamp()))

    def ratings(self, *, every_revision: bool = False) -> list[Rating]:
        """The latest rating of each rater for each item, or every revision; ordered by rater and item."""
        table = HISTORY if every_revision else RATINGS
        query = select(table).order_by(table.c.rater, table.c.item, table.c.revision)
        with self._database.reading() as connection:
            return [Rating(**row) for row in connection.execute(query).mappings()]


def _admit(connection: Connection, rater: Rater) -> Rater:
    same_rater = RATERS.c.id == rater.id
    if rater.external:
        same_rater |= and_(RATERS.c.origin == rater.origin, RATERS.c.external == rater.external)
    row = connection.execute(select(RATERS).where(same_rater)).mappings().first()
    if row is not None:
        return _rater(row)
    connection.execute(insert(RATERS).values(**{**asdict(rater), "external": rater.external or None}))
    return rater


def _rater(row: Mapping[Any, Any]) -> Rater:
    return Rater(**{**row, "external": row["external"] or ""})


def _assigned(connection: Connection, rater: str) -> list[AssignedItem]:
    query = (
        select(ASSIGNMENTS.c.item, ASSIGNMENTS.c.place.label("position"), ASSIGNMENTS.c.at, RATINGS.c.score)
        .select_from(_WITH_RATINGS)
        .where(ASSIGNMENTS.c.rater == rater)
        .order_by(ASSIGNMENTS.c.place)
    )
    return [AssignedItem(**row) for row in connection.execute(query).mappings()]


def _load(connection: Connection, free_before: str) -> Counter[str]:
    rated = select(RATINGS.c.item, func.count()).group_by(RATINGS.c.item)
    open_items = (
        select(ASSIGNMENTS.c.item, func.count())
        .select_from(_WITH_RATINGS)
        .where(RATINGS.c.item.is_(None), ASSIGNMENTS.c.at >= free_before)
        .group_by(ASSIGNMENTS.c.item)
    )
    load: Counter[str] = Counter()
    for counts in (rated, open_items):
        for item, count in connection.execute(counts):
            load[item] += count
    return load


def _rate(connection: Connection, rating: Rating) -> bool:
    """Save a rating instead of the rater's earlier rating, unless its key was saved before; whether it was new."""
    revisions = and_(HISTORY.c.rater == rating.rater, HISTORY.c.item == rating.item)
    if rating.key and connection.execute(select(HISTORY).where(revisions, HISTORY.c.key == rating.key)).first():
        return False
    last = connection.execute(select(func.max(HISTORY.c.revision)).where(revisions)).scalar()
    new = replace(rating, revision=(last or 0) + 1)
    values = asdict(new)
    connection.execute(insert(HISTORY).values(**values))
    if last is None:
        connection.execute(insert(RATINGS).values(**values))
    else:
        same = and_(RATINGS.c.rater == new.rater, RATINGS.c.item == new.item)
        connection.execute(update(RATINGS).where(same).values(**values))
    return True
