"""Read candidates from a file or a pipe, one group in memory at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any

from cod3s.errors import FileFormatError
from cod3s.io.tables import KINDS, Row, Table, guessed_kind, open_table
from cod3s.options import find_name


@dataclass(frozen=True, slots=True)  # a file may hold millions
class Candidate:
    """A candidate: its text, its score, and the whole record that it comes from."""

    text: str
    score: float | None
    row: Row


@dataclass(frozen=True)
class Group:
    """Consecutive candidates with the same value in the field they are grouped by."""

    value: Any
    candidates: tuple[Candidate, ...]


@contextmanager
def open_candidates(path: Path, kind: str | None, text_field: str | None) -> Iterator[Table]:
    """The table in `path` (`-` is standard input); `kind` or the first line says what its name does not."""
    if kind is not None:
        find_name("format", kind, KINDS)
    with open_table(path, kind, guess=partial(_guess, text_field)) as table:
        yield table


def _guess(text_field: str | None, first: str) -> str:
    kind = guessed_kind(first)
    return "lines" if text_field is None and kind != "jsonl" else kind


def read_groups(
    table: Table, *, text_field: str | None, score_field: str | None = None, group_by: str | None = None
) -> Iterator[Group]:
    """The candidates, a group of neighbours at a time; without `group_by` all of them are a single group.

    A field that the table does not have is an error at once, before the first group is asked for.
    """
    candidates = _read(table, text_field, score_field)
    if group_by is None:
        return _single(candidates)
    return _grouped(candidates, table, group_by)


def _single(candidates: Iterator[Candidate]) -> Iterator[Group]:
    yield Group(None, tuple(candidates))


def _grouped(candidates: Iterator[Candidate], table: Table, group_by: str) -> Iterator[Group]:
    value = table.field(group_by)

    def key(candidate: Candidate) -> Any:
        group = value(candidate.row)
        if group is None:
            raise FileFormatError(f"{table.name}, line {candidate.row.line}: nothing in a field {group_by!r}")
        return group

    return (Group(group, tuple(members)) for group, members in groupby(candidates, key))


def _read(table: Table, text_field: str | None, score_field: str | None) -> Iterator[Candidate]:
    bare = table.kind == "lines" and text_field is None
    text = (lambda row: row.record) if bare else table.text(text_field or "text")
    score = None if score_field is None else table.field(score_field)
    return (
        Candidate(text(row), None if score is None else _number(score(row), row, table, score_field), row)
        for row in table
    )


def _number(value: Any, row: Row, table: Table, field: str | None) -> float:
    try:
        number = float("nan") if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not isfinite(number):
        raise FileFormatError(
            f"{table.name}, line {row.line}: the score in {field!r} is {value!r}, but must be a finite number",
            hint="leave such records out, or give them a low score",
        )
    return number
