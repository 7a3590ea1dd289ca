"""SQLite files that describe themselves: written all or nothing, and read without trusting their content."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from cod3s.errors import Cod3sError
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import replaced_file

Facts = TypeVar("Facts")
Self = TypeVar("Self", bound="SqliteFile[Any]")
_FACTS_TABLE = "CREATE TABLE facts (content TEXT NOT NULL);"


class SqliteFile(Generic[Facts]):
    """A file that is open for reading; use it as a context manager or call `close`.

    Its table `facts` holds a JSON record of how it was made, with the number of its format.
    """

    what: ClassVar[str]  # for messages, such as "a bins file"
    remedy: ClassVar[str]  # how to make the file again
    error: ClassVar[type[Cod3sError]]
    schema: ClassVar[str]  # of the tables besides `facts`
    tables: ClassVar[tuple[str, ...]]
    facts_type: ClassVar[type[Any]]
    any_thread: ClassVar[bool] = False  # whether threads share the connection

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._readable():
            self._database = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=not self.any_thread
            )
            self.facts: Facts = self._read_facts()

    @classmethod
    @contextmanager
    def new(cls, path: Path, facts: Any) -> Iterator[sqlite3.Connection]:
        """A database with the tables and `facts`, which replaces `path` if the block ends without an error."""
        with replaced_file(path) as partial:
            try:
                with closing(sqlite3.connect(partial)) as database:
                    # The file is deleted if anything goes wrong, so a journal would protect nothing.
                    database.execute("PRAGMA page_size = 65536")  # the largest, which compresses best
                    database.execute("PRAGMA journal_mode = OFF")
                    database.executescript(_FACTS_TABLE + cls.schema)
                    database.execute("INSERT INTO facts VALUES (?)", (json.dumps(asdict(facts)),))
                    yield database
                    database.commit()
            except sqlite3.OperationalError as error:
                raise cls.error(
                    f"{path} cannot be written: {error}", hint="check that the disk has free space"
                ) from error

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def _read_facts(self) -> Any:
        # A view could run any query, for any length of time, so only tables are read.
        names = self._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if missing := {"facts", *self.tables} - {name for (name,) in names}:
            raise TypeError(f"it has no table {sorted(missing)[0]!r}")
        facts = json.loads(self._database.execute("SELECT content FROM facts").fetchone()[0])
        if facts["format"] > self.facts_type.format:  # the default of the field is the newest format
            raise self.error(f"{self.path} has the newer format {facts['format']}", hint="upgrade cod3s")
        return parse_record(self.facts_type, facts)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn SQLite's errors about damage, which can occur anywhere, into a clear error for the user."""
        try:
            yield
        except (sqlite3.DatabaseError, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            message = f"{self.path} is not {self.what}, or it is damaged: {error}"
            raise self.error(message, hint=f"make it again with `{self.remedy}`") from error
