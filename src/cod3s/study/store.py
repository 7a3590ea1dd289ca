"""Store raters, the items assigned to each, and every revision of their ratings, in SQLite or PostgreSQL.

Every method is a transaction: when it returns, its changes are on the disk.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from cod3s.errors import Cod3sError, require
from cod3s.study.folder import Study
from cod3s.study.raters import Rater, Rating, timestamp

DATABASE_FILE = "ratings.sqlite"
_HINT = "for example sqlite:///ratings.sqlite or postgresql://user@localhost/ratings"
_WRITER_LOCK = 0x0C0D35  # any number, the same in every process: the advisory lock of PostgreSQL
_BUSY_SECONDS = 30

METADATA = sa.MetaData()
STUDIES = sa.Table("study", METADATA, sa.Column("id", sa.String, primary_key=True))
RATERS = sa.Table(
    "raters",
    METADATA,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("origin", sa.String, nullable=False),
    sa.Column("created", sa.String, nullable=False),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("external", sa.String),  # NULL if there is none: NULLs are never equal
    sa.Column("session", sa.String, nullable=False),
    sa.Column("finished", sa.String, nullable=False),
    sa.UniqueConstraint("origin", "external"),
)
TOKENS = sa.Table(
    "tokens",
    METADATA,
    sa.Column("hash", sa.String, primary_key=True),
    sa.Column("rater", sa.ForeignKey("raters.id"), nullable=False),
)
ASSIGNMENTS = sa.Table(
    "assignments",
    METADATA,
    sa.Column("rater", sa.ForeignKey("raters.id"), primary_key=True),
    sa.Column("item", sa.String, primary_key=True),
    sa.Column("position", sa.Integer, nullable=False),  # in the rater's order, from 1
    sa.Column("at", sa.String, nullable=False),
    sa.UniqueConstraint("rater", "position"),
    sa.Index("assignments_items", "item"),
)
RATINGS = sa.Table(
    "ratings",
    METADATA,
    sa.Column("rater", sa.ForeignKey("raters.id"), primary_key=True),
    sa.Column("item", sa.String, primary_key=True),
    sa.Column("revision", sa.Integer, primary_key=True),  # never changed or deleted: the highest one counts
    sa.Column("score", sa.Integer, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("at", sa.String, nullable=False),
    sa.Column("key", sa.String, nullable=False),
    sa.Index("ratings_items", "item"),
)
_LATER = RATINGS.alias()
_IS_LATEST = ~(
    sa.exists()
    .where(_LATER.c.rater == RATINGS.c.rater, _LATER.c.item == RATINGS.c.item)
    .where(_LATER.c.revision > RATINGS.c.revision)
    .correlate(RATINGS)
)
_OF_ASSIGNMENT = sa.and_(RATINGS.c.rater == ASSIGNMENTS.c.rater, RATINGS.c.item == ASSIGNMENTS.c.item)

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
    """The store at a `sqlite:///FILE` or `postgresql://` URL, which must not belong to another study."""
    try:
        parsed = sa.make_url(url)
    except ArgumentError as error:
        raise Cod3sError(f"{url!r} is not the URL of a database", hint=_HINT) from error
    store = Store(_engine(parsed))
    try:
        stored_id = store.claim(study.id)
    except SQLAlchemyError as error:
        store.close()
        shown = parsed.render_as_string(hide_password=True)
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise Cod3sError(f"the database {shown} cannot be opened: {reason}", hint=_HINT) from error
    if stored_id != study.id:
        store.close()
        raise Cod3sError(
            "the database holds the ratings of another study",
            hint="use a separate database for each study: --database URL",
        )
    return store


class Store:
    """An open store; use it as a context manager or call `close`. Safe to share between threads."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        # SQLite makes writers poll for their turn; with a lock, the threads of this process need not.
        self._turn = Lock()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._engine.dispose()

    def claim(self, study_id: str) -> str:
        """Create missing tables, and return the id of the study that the store belongs to: the first that came."""
        with self._writing() as connection:
            METADATA.create_all(connection)
            stored_id = connection.execute(sa.select(STUDIES.c.id)).scalar()
            if stored_id is None:
                connection.execute(sa.insert(STUDIES).values(id=study_id))
            return study_id if stored_id is None else str(stored_id)

    def admit(self, rater: Rater, token_hash: str) -> Rater:
        """`rater`, or the earlier rater with the same origin and external id; the token works for either."""
        with self._writing() as connection:
            admitted = _admit(connection, rater)
            connection.execute(sa.insert(TOKENS).values(hash=token_hash, rater=admitted.id))
        return admitted

    def rater_of(self, token_hash: str) -> Rater | None:
        """The rater whose token has this hash. Looking up a hash leaks nothing about the token through timing."""
        query = sa.select(RATERS).join(TOKENS).where(TOKENS.c.hash == token_hash)
        with self._reading() as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else _rater(row)

    def raters(self) -> list[Rater]:
        """All raters in order of arrival."""
        query = sa.select(RATERS).order_by(RATERS.c.created, RATERS.c.id)
        with self._reading() as connection:
            return [_rater(row) for row in connection.execute(query).mappings()]

    def assigned(self, rater: str) -> list[AssignedItem]:
        """The items assigned to `rater`, in order; only the last may be unrated."""
        with self._reading() as connection:
            return _assigned(connection, rater)

    def assign_next(
        self, rater: str, choose: Choose, *, free_before: str, after: Rating | None = None
    ) -> AssignedItem | None:
        """The item that `rater` rates next: their open item, or the choice of `choose`; None for no more.

        The rating `after`, if any, is saved first, in the same transaction. Items count as taken if
        they are rated or were assigned since `free_before`. If the rater's open item was assigned before that,
        the choice is made again, because others may have rated it in the meantime.
        """
        with self._writing() as connection:
            if after is not None:
                _rate(connection, after)
            assigned = _assigned(connection, rater)
            if assigned and assigned[-1].score is None:
                if assigned[-1].at >= free_before:
                    return assigned[-1]
                expired = sa.and_(ASSIGNMENTS.c.rater == rater, ASSIGNMENTS.c.item == assigned.pop().item)
                connection.execute(sa.delete(ASSIGNMENTS).where(expired))
            item = choose([earlier.item for earlier in assigned], _load(connection, free_before))
            if item is None:
                return None
            new = AssignedItem(item, len(assigned) + 1, timestamp())
            row = {"rater": rater, "item": item, "position": new.position, "at": new.at}
            connection.execute(sa.insert(ASSIGNMENTS).values(row))
        return new

    def add(self, raters: Iterable[Rater], ratings: Iterable[Rating]) -> int:
        """Save raters and ratings from elsewhere, all or none, and return how many of the ratings were new.

        A rater who is stored already, by id or by origin and external id, is not added again; ratings refer to
        their rater by the id in `raters`. Give every rating a key, so that adding it twice saves it once.
        """
        with self._writing() as connection:
            ids = {rater.id: _admit(connection, rater).id for rater in raters}
            return sum(
                _rate(connection, replace(rating, rater=ids.get(rating.rater, rating.rater))) for rating in ratings
            )

    def finish(self, rater: str) -> None:
        """Record that `rater` has reached the end; only the first time counts."""
        unfinished = sa.and_(RATERS.c.id == rater, RATERS.c.finished == "")
        with self._writing() as connection:
            connection.execute(sa.update(RATERS).where(unfinished).values(finished=timestamp()))

    def ratings(self, *, every_revision: bool = False) -> list[Rating]:
        """The latest rating of each rater for each item, or every revision; ordered by rater and item."""
        query = sa.select(RATINGS).order_by(RATINGS.c.rater, RATINGS.c.item, RATINGS.c.revision)
        if not every_revision:
            query = query.where(_IS_LATEST)
        with self._reading() as connection:
            return [Rating(**row) for row in connection.execute(query).mappings()]

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        """A transaction that sees a snapshot of the database and changes nothing."""
        with self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction without any concurrent writer: what it reads stays true until it commits.

        One lock for all writers is enough: a rating is one write to the disk, and people click more slowly.
        """
        with self._turn, self._engine.connect().execution_options(writing=True) as connection, connection.begin():
            if self._engine.dialect.name == "postgresql":
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _WRITER_LOCK})
            yield connection


def _admit(connection: sa.Connection, rater: Rater) -> Rater:
    same_rater = RATERS.c.id == rater.id
    if rater.external:
        same_rater |= sa.and_(RATERS.c.origin == rater.origin, RATERS.c.external == rater.external)
    row = connection.execute(sa.select(RATERS).where(same_rater)).mappings().first()
    if row is not None:
        return _rater(row)
    connection.execute(sa.insert(RATERS).values(**{**asdict(rater), "external": rater.external or None}))
    return rater


def _rater(row: Mapping[Any, Any]) -> Rater:
    return Rater(**{**row, "external": row["external"] or ""})


def _assigned(connection: sa.Connection, rater: str) -> list[AssignedItem]:
    query = (
        sa.select(ASSIGNMENTS.c.item, ASSIGNMENTS.c.position, ASSIGNMENTS.c.at, RATINGS.c.score)
        .select_from(ASSIGNMENTS.outerjoin(RATINGS, sa.and_(_OF_ASSIGNMENT, _IS_LATEST)))
        .where(ASSIGNMENTS.c.rater == rater)
        .order_by(ASSIGNMENTS.c.position)
    )
    return [AssignedItem(**row) for row in connection.execute(query).mappings()]


def _load(connection: sa.Connection, free_before: str) -> Counter[str]:
    rated = sa.select(RATINGS.c.item, sa.func.count(sa.distinct(RATINGS.c.rater))).group_by(RATINGS.c.item)
    is_open = sa.and_(ASSIGNMENTS.c.at >= free_before, ~sa.exists().where(_OF_ASSIGNMENT).correlate(ASSIGNMENTS))
    waiting = sa.select(ASSIGNMENTS.c.item, sa.func.count()).where(is_open).group_by(ASSIGNMENTS.c.item)
    load: Counter[str] = Counter()
    for counts in (rated, waiting):
        for item, count in connection.execute(counts):
            load[item] += count
    return load


def _rate(connection: sa.Connection, rating: Rating) -> bool:
    """Save a rating as the next revision, unless its key was saved before; whether it was new."""
    revisions = sa.and_(RATINGS.c.rater == rating.rater, RATINGS.c.item == rating.item)
    if rating.key and connection.execute(sa.select(RATINGS).where(revisions, RATINGS.c.key == rating.key)).first():
        return False
    last = connection.execute(sa.select(sa.func.max(RATINGS.c.revision)).where(revisions)).scalar()
    connection.execute(sa.insert(RATINGS).values(**asdict(replace(rating, revision=(last or 0) + 1))))
    return True


def _engine(url: sa.URL) -> sa.Engine:
    backend = url.get_backend_name()
    if backend == "postgresql":
        require("psycopg", "postgresql")
        return sa.create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    if backend != "sqlite":
        raise Cod3sError(f"ratings cannot be stored in {backend!r}", hint=_HINT)
    engine = sa.create_engine(url, connect_args={"timeout": _BUSY_SECONDS})
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # _begin_sqlite begins transactions, not the driver
    # FULL makes a commit wait for the disk, so that a saved rating survives even a power cut.
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
