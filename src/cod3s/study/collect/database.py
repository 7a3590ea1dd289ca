"""The tables of the ratings, and a connection to SQLite or PostgreSQL that never loses a committed write."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    create_engine,
    event,
    make_url,
    text,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from cod3s.errors import Cod3sError, require

_LOCK = 0x0C0D35  # any number, the same in every process: the advisory lock of PostgreSQL
_BUSY_SECONDS = 30

METADATA = MetaData()
STUDIES = Table("study", METADATA, Column("id", String, primary_key=True))
RATERS = Table(
    "raters",
    METADATA,
    Column("id", String, primary_key=True),
    Column("origin", String, nullable=False),
    Column("created", String, nullable=False),
    Column("name", String, nullable=False),
    Column("external", String),  # NULL if there is none: NULLs are never equal
    Column("session", String, nullable=False),
    Column("finished", String, nullable=False),
    UniqueConstraint("origin", "external"),
)
TOKENS = Table(
    "tokens",
    METADATA,
    Column("hash", String, primary_key=True),
    Column("rater", ForeignKey("raters.id"), nullable=False),
)
ASSIGNMENTS = Table(
    "assignments",
    METADATA,
    Column("rater", ForeignKey("raters.id"), primary_key=True),
    Column("item", String, primary_key=True),
    Column("place", Integer, nullable=False),  # in the rater's order, from 1
    Column("at", String, nullable=False),
    UniqueConstraint("rater", "place"),
)


def _rating_columns(*, of_history: bool) -> list[Column[Any]]:
    return [
        Column("rater", ForeignKey("raters.id"), primary_key=True),
        Column("item", String, primary_key=True),
        Column("revision", Integer, primary_key=of_history, nullable=False),
        Column("score", Integer, nullable=False),
        Column("seconds", Float, nullable=False),
        Column("at", String, nullable=False),
        Column("key", String, nullable=False),
    ]


RATINGS = Table("ratings", METADATA, *_rating_columns(of_history=False))
HISTORY = Table("history", METADATA, *_rating_columns(of_history=True))
Index("history_keys", HISTORY.c.rater, HISTORY.c.item, HISTORY.c.key)
Index("ratings_items", RATINGS.c.item)
Index("assignments_items", ASSIGNMENTS.c.item)


class Database:
    """An open database with concurrent readers and one writer at a time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # SQLite makes writers poll for their turn; with a lock, the threads of this process need not.
        self._turn = Lock()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees a snapshot of the database and changes nothing."""
        with self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction without any concurrent writer: what it reads stays true until it commits.

        One lock for all writers is enough: a rating is one write to the disk, and people click more slowly.
        """
        with self._turn, self._engine.connect().execution_options(writing=True) as connection, connection.begin():
            if self._engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            yield connection

    def close(self) -> None:
        self._engine.dispose()


def open_database(url: str) -> Database:
    """The database at a `sqlite:///FILE` or `postgresql://` URL; missing tables are created."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise Cod3sError(f"{url!r} is not the URL of a database", hint=_HINT) from error
    database = Database(_engine(parsed))
    try:
        with database.writing() as connection:
            METADATA.create_all(connection)
    except SQLAlchemyError as error:
        shown = parsed.render_as_string(hide_password=True)
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise Cod3sError(f"the database {shown} cannot be opened: {reason}", hint=_HINT) from error
    return database


_HINT = "for example sqlite:///ratings.sqlite or postgresql://user@localhost/ratings"


def _engine(url: URL) -> Engine:
    backend = url.get_backend_name()
    if backend == "postgresql":
        require("psycopg", "postgresql")
        return create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    if backend != "sqlite":
        raise Cod3sError(f"ratings cannot be stored in {backend!r}", hint=_HINT)
    engine = create_engine(url, connect_args={"timeout": _BUSY_SECONDS})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # _begin_sqlite begins transactions, not the driver
    # FULL makes a commit wait for the disk, so that a saved rating survives even a power cut.
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
