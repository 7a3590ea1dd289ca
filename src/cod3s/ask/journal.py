"""Keep every exchange of a run as soon as it is there, so that nothing is ever paid for twice.

folder/
  job.json           whose answers these are: the model and the schema
  calls.sqlite       the journal: every call with its answers, by prompt; it stays when the run is complete
  part-00000.jsonl   the answers to a part of the rows, a line per row
  report.json        what the run brought and cost
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cod3s.ask.session import Exchange
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import read_json, write_json
from cod3s.io.lock import sole_writer
from cod3s.options import changed_values

JOB, CALLS, REPORT = "job.json", "calls.sqlite", "report.json"
_FORMAT = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS exchanges (prompt TEXT, call INTEGER, content TEXT, PRIMARY KEY (prompt, call));
CREATE TABLE IF NOT EXISTS parts (number INTEGER PRIMARY KEY, stamp TEXT, summary TEXT);
"""


class Journal:
    """The exchanges of a run by the fingerprint of their prompt, and what is known about its parts."""

    def __init__(self, database: sqlite3.Connection, folder: Path | None) -> None:
        self._database, self.folder = database, folder

    def exchanges(self, prompt: str) -> list[Exchange]:
        """All exchanges about a prompt, in the order of their calls."""
        query = "SELECT content FROM exchanges WHERE prompt = ? ORDER BY call"
        try:
            contents = [json.loads(content) for (content,) in self._database.execute(query, (prompt,))]
            return [parse_record(Exchange, content) for content in contents]
        except (sqlite3.DatabaseError, ValueError, TypeError, KeyError) as error:
            raise self._damaged(error) from error

    def add(self, prompt: str, exchange: Exchange) -> None:
        """Keep an exchange, in place of the same with other scores. A call without texts is asked again."""
        if exchange.reply.failure:
            return
        content = asdict(replace(exchange, reply=replace(exchange.reply, error=None)))
        del content["reply"]["error"]
        self._write(
            "INSERT OR REPLACE INTO exchanges VALUES (?, ?, ?)", (prompt, exchange.call, json.dumps(content))
        )

    def has(self, prompt: str, call: int) -> bool:
        """Whether the reply to a call is there."""
        query = "SELECT 1 FROM exchanges WHERE prompt = ? AND call = ?"
        return self._database.execute(query, (prompt, call)).fetchone() is not None

    def part(self, number: int) -> tuple[str, Mapping[str, Any]]:
        """The stamp and the summary of a part that is complete; empty without one."""
        query = "SELECT stamp, summary FROM parts WHERE number = ?"
        try:
            stamp, summary = self._database.execute(query, (number,)).fetchone() or ("", "{}")
            return stamp, json.loads(summary)
        except (sqlite3.DatabaseError, ValueError) as error:
            raise self._damaged(error) from error

    def set_part(self, number: int, stamp: str, summary: Mapping[str, Any]) -> None:
        """Note that a part is complete."""
        self._write("INSERT OR REPLACE INTO parts VALUES (?, ?, ?)", (number, stamp, json.dumps(summary)))

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        try:
            with self._database:
                self._database.execute(statement, values)
        except sqlite3.OperationalError as error:
            raise Cod3sError(
                f"{self.folder or 'memory'} cannot be written: {error}", hint="check that the disk has free space"
            ) from error

    def _damaged(self, error: Exception) -> FileFormatError:
        return FileFormatError(
            f"the journal {self.folder}/{CALLS} is damaged: {error}", hint="start again in another folder"
        )


@contextmanager
def open_journal(folder: Path | None, job: Mapping[str, Any]) -> Iterator[Journal]:
    """The journal in a folder, which is made if it is missing; in memory without one.

    A folder with the answers of another job, or with other files, is an error.
    """
    with sole_writer(folder) if folder is not None else nullcontext():
        if folder is not None:
            _check_job(folder, job)
        with closing(sqlite3.connect(":memory:" if folder is None else folder / CALLS)) as database:
            try:
                # With a log, a killed run loses nothing, and a call need not wait for the disk.
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = NORMAL")
                database.executescript(_SCHEMA)
            except sqlite3.DatabaseError as error:
                raise FileFormatError(
                    f"{folder}/{CALLS} is not a journal: {error}", hint="start again in another folder"
                ) from error
            yield Journal(database, folder)


def _check_job(folder: Path, job: Mapping[str, Any]) -> None:
    file = folder / JOB
    if not file.exists():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Cod3sError(
                f"{folder} already contains something, but no answers from `cod3s diversify`",
                hint="choose a new or empty folder",
            )
        write_json(file, {"format": _FORMAT, **job})
        return
    before = read_json(file)
    if not isinstance(before, dict) or before.get("format") != _FORMAT:
        raise Cod3sError(f"{file} has a different format", hint="choose another folder")
    if changed := changed_values(before, job):
        raise Cod3sError(
            f"{folder} holds the answers of a different job: {'; '.join(changed)}", hint="choose another folder"
        )
