"""The store of a study: raters, what each was given, and their ratings with every revision.

Frozen records in and out. Every method is one transaction: when it returns, what it wrote is on the disk.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from cod3s.errors import Cod3sError
from cod3s.judge.collect.database import (
    ASSIGNMENTS,
    HISTORY,
    RATERS,
    RATINGS,
    STUDIES,
    TOKENS,
    Database,
    open_database,
)
from cod3s.judge.study.study import Rater, Rating, Study

DATABASE_FILE = "ratings.sqlite"

Choose = Callable[[Sequence[str], Mapping[str, int]], str | None]
"""Told a rater's items so far and how many raters each item has; names the next one, or None for no more."""


@dataclass(frozen=True)
class Given:
    """An item that a rater was given, and what they said of it."""

    item: str
    place: int  # in the rater's own order, from 1
    at: str
    score: int | None = None  # None until it is rated


def as_text(moment: datetime) -> str:
    """A moment as it is stored: UTC, ISO 8601 with milliseconds, so that such texts sort by time."""
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def timestamp() -> str:
    """This moment, as it is stored."""
    return as_text(datetime.now(timezone.utc))


def database_url(folder: Path, url: str = "") -> str:
    """Where the ratings of the study in `folder` are: at `url`, or in a SQLite file beside it."""
    return url or f"sqlite:///{(folder / DATABASE_FILE).resolve()}"


def open_store(url: str, study: Study) -> "Store":
    """The store at `url`, made where there is none; one that holds another study's ratings is refused."""
    database = open_database(url)
    with database.writing() as connection:
        found = connection.execute(select(STUDIES.c.id)).scalar()
        if found is None:
            connection.execute(insert(STUDIES).values(id=study.id))
        elif found != study.id:
            database.close()
            raise Cod3sError(
                "the database holds the ratings of another study",
                hint="give each study a database of its own, by --database",
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
        """`rater`, or whoever came before with the same origin and external id; the token opens either."""
        with self._database.writing() as connection:
            admitted = _admit(connection, rater)
            connection.execute(insert(TOKENS).values(hash=token_hash, rater=admitted.id))
        return admitted

    def rater_of(self, token_hash: str) -> Rater | None:
        """Whose token has this hash."""
        wanted = select(RATERS).join(TOKENS).where(TOKENS.c.hash == token_hash)
        with self._database.reading() as connection:
            row = connection.execute(wanted).mappings().first()
        return None if row is None else _rater(row)

    def raters(self) -> list[Rater]:
        """All raters, in the order in which they came."""
        with self._database.reading() as connection:
            rows = connection.execute(select(RATERS).order_by(RATERS.c.created, RATERS.c.id)).mappings().all()
        return [_rater(row) for row in rows]

    def given(self, rater: str) -> list[Given]:
        """What `rater` was given, in order; only the last may be unrated."""
        with self._database.reading() as connection:
            return _given(connection, rater)

    def give(self, rater: str, choose: Choose, *, free_before: str, after: Rating | None = None) -> Given | None:
        """The item that `rater` rates next: the one still open, or the one that `choose` names; None for no more.

        The rating `after` which they go on is saved first, as by `rate`, and with the same wait for the disk.
        Items count as taken where they are rated, or were given since `free_before`. The rater's own open item,
        given before that, is chosen afresh, because others may have rated it meanwhile.
        """
        with self._database.writing() as connection:
            if after is not None:
                _rate(connection, after)
            given = _given(connection, rater)
            if given and given[-1].score is None:
                if given[-1].at >= free_before:
                    return given[-1]
                _take_back(connection, rater, given.pop().item)
            item = choose([one.item for one in given], _load(connection, free_before))
            if item is None:
                return None
            new = Given(item, place=len(given) + 1, at=timestamp())
            connection.execute(insert(ASSIGNMENTS).values(rater=rater, item=new.item, place=new.place, at=new.at))
        return new

    def load(self, *, free_before: str) -> dict[str, int]:
        """How many raters each item has: those who rated it, and those who were given it since `free_before`."""
        with self._database.reading() as connection:
            return _load(connection, free_before)

    def rate(self, rating: Rating) -> Rating:
        """Save a rating in place of the rater's earlier one; what is returned has its revision.

        A key that was saved before changes nothing, so a page may send again what was not answered.
        """
        with self._database.writing() as connection:
            return _rate(connection, rating)

    def add(self, raters: Iterable[Rater], ratings: Iterable[Rating]) -> int:
        """Save raters and ratings from elsewhere, all or none; how many of the ratings were new.

        A rater that is here already, by id or by origin and external id, is not added again; ratings name their
        rater by the id in `raters`. Give every rating a key: by it, adding twice adds once.
        """
        with self._database.writing() as connection:
            ids = {rater.id: _admit(connection, rater).id for rater in raters}
            before = connection.execute(select(func.count()).select_from(HISTORY)).scalar_one()
            for rating in ratings:
                _rate(connection, replace(rating, rater=ids.get(rating.rater, rating.rater)))
            after = connection.execute(select(func.count()).select_from(HISTORY)).scalar_one()
        return int(after - before)

    def finish(self, rater: str) -> None:
        """Note that `rater` has reached the end; the first time counts."""
        with self._database.writing() as connection:
            unfinished = and_(RATERS.c.id == rater, RATERS.c.finished == "")
            connection.execute(update(RATERS).where(unfinished).values(finished=timestamp()))

    def ratings(self) -> list[Rating]:
        """The ratings that count: the latest of each rater for each item, ordered by rater and item."""
        with self._database.reading() as connection:
            rows = connection.execute(select(RATINGS).order_by(RATINGS.c.rater, RATINGS.c.item)).mappings().all()
        return [Rating(**row) for row in rows]

    def history(self) -> list[Rating]:
        """Every revision of every rating, ordered by rater, item and revision."""
        order = (HISTORY.c.rater, HISTORY.c.item, HISTORY.c.revision)
        with self._database.reading() as connection:
            rows = connection.execute(select(HISTORY).order_by(*order)).mappings().all()
        return [Rating(**row) for row in rows]


def _admit(connection: Connection, rater: Rater) -> Rater:
    same = RATERS.c.id == rater.id
    if rater.external:
        same |= and_(RATERS.c.origin == rater.origin, RATERS.c.external == rater.external)
    found = connection.execute(select(RATERS).where(same)).mappings().first()
    if found is not None:
        return _rater(found)
    connection.execute(insert(RATERS).values(**{**asdict(rater), "external": rater.external or None}))
    return rater


def _rater(row: Mapping[Any, Any]) -> Rater:
    return Rater(**{**row, "external": row["external"] or ""})


def _given(connection: Connection, rater: str) -> list[Given]:
    same = and_(RATINGS.c.rater == ASSIGNMENTS.c.rater, RATINGS.c.item == ASSIGNMENTS.c.item)
    wanted = (
        select(ASSIGNMENTS.c.item, ASSIGNMENTS.c.place, ASSIGNMENTS.c.at, RATINGS.c.score)
        .join_from(ASSIGNMENTS, RATINGS, same, isouter=True)
        .where(ASSIGNMENTS.c.rater == rater)
        .order_by(ASSIGNMENTS.c.place)
    )
    return [Given(**row) for row in connection.execute(wanted).mappings()]


def _take_back(connection: Connection, rater: str, item: str) -> None:
    connection.execute(delete(ASSIGNMENTS).where(ASSIGNMENTS.c.rater == rater, ASSIGNMENTS.c.item == item))


def _load(connection: Connection, free_before: str) -> dict[str, int]:
    rated = select(RATINGS.c.item, func.count()).group_by(RATINGS.c.item)
    same = and_(RATINGS.c.rater == ASSIGNMENTS.c.rater, RATINGS.c.item == ASSIGNMENTS.c.item)
    open_items = (
        select(ASSIGNMENTS.c.item, func.count())
        .join_from(ASSIGNMENTS, RATINGS, same, isouter=True)
        .where(RATINGS.c.item.is_(None), ASSIGNMENTS.c.at >= free_before)
        .group_by(ASSIGNMENTS.c.item)
    )
    load: dict[str, int] = {}
    for wanted in (rated, open_items):
        for item, count in connection.execute(wanted):
            load[item] = load.get(item, 0) + count
    return load


def _rate(connection: Connection, rating: Rating) -> Rating:
    own = and_(HISTORY.c.rater == rating.rater, HISTORY.c.item == rating.item)
    if rating.key:
        known = connection.execute(select(HISTORY).where(own, HISTORY.c.key == rating.key)).mappings().first()
        if known is not None:
            return Rating(**known)
    last = connection.execute(select(func.max(HISTORY.c.revision)).where(own)).scalar()
    new = replace(rating, revision=(last or 0) + 1)
    values = asdict(new)
    connection.execute(insert(HISTORY).values(**values))
    if last is None:
        connection.execute(insert(RATINGS).values(**values))
    else:
        same = and_(RATINGS.c.rater == new.rater, RATINGS.c.item == new.item)
        connection.execute(update(RATINGS).where(same).values(**values))
    return new
