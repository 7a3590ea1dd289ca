"""Parse a line of a pairs file into the cells of a pair, or the reason why it is not a pair."""

import csv
import json
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from cod3s.corpus.relations import ORDERS
from cod3s.io.lines import Damaged
from cod3s.io.tables import MAX_FIELD

PAIR_COLUMNS = ("first", "second", "order", "pattern", "corpus")
"""`first` is the cause or the source, `second` the effect or the target."""

Row = tuple[str, ...]  # the cells of PAIR_COLUMNS
Parser = Callable[[str], Row | Damaged]


def optional_columns(names: tuple[str, str], header: Sequence[str]) -> dict[str, str]:
    """The optional columns that a file has: name in PAIR_COLUMNS → name in the file.

    An order only counts where cause and effect are named. Tables that older versions of `cod3s harvest` wrote have
    the corpus in a column `source`.
    """
    known = {name: name for name in PAIR_COLUMNS[2:] if name in header}
    if names != ("cause", "effect"):
        known.pop("order", None)
    elif "corpus" not in header and {"order", "pattern", "source"} <= set(header):
        known["corpus"] = "source"
    return known


def tsv_cells(line: str) -> list[str]:
    """The cells between tabs, unquoted: quotes and backslashes are ordinary characters."""
    return line.split("\t")


def csv_cells(line: str) -> list[str]:
    """The cells between commas, quoted where needed; none if a quotation mark is not closed on the line."""
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        return []


def cell_parser(split: Callable[[str], list[str]], header: Sequence[str], names: tuple[str, str]) -> Parser:
    """Parse rows that `split` cuts into the cells of the columns in `header`; a row is a line."""
    csv.field_size_limit(MAX_FIELD)
    width = len(header)
    optional = optional_columns(names, header)
    positions = [header.index(optional[name]) if name in optional else width for name in PAIR_COLUMNS[2:]]
    pick = itemgetter(*(header.index(name) for name in names), *positions)

    def parse(line: str) -> Row | Damaged:
        cells = split(line)
        if not cells:
            return Damaged("a quoted cell does not end on this line")
        if len(cells) != width:
            return Damaged(f"{len(cells)} columns where the header has {width}")
        cells.append("")  # the cell of a missing optional column
        return _with_known_order(pick(cells))

    return parse


def json_parser(names: tuple[str, str]) -> Parser:
    """One object per line; other keys are ignored."""
    wanted = (*names, "order" if names == ("cause", "effect") else "", "pattern", "corpus")

    def parse(line: str) -> Row | Damaged:
        try:
            record = json.loads(line, object_pairs_hook=_unique_keys)
        except (ValueError, RecursionError) as error:
            return Damaged(f"not a JSON object ({error})")
        if not isinstance(record, dict):
            return Damaged("not a JSON object")
        row: list[Any] = [record.get(name, None if name in names else "") for name in wanted]
        for name, value in zip(wanted, row, strict=True):
            if not isinstance(value, str) or not _is_plain(value):
                return Damaged(f"{name!r} is missing, or is not text")
        return _with_known_order(tuple(row))

    return parse


def causalbank_parser(order: str) -> Parser:
    """A connective, the text before it and the text after it: effect and cause, or cause and effect."""

    def parse(line: str) -> Row | Damaged:
        cells = line.split("\t")
        if len(cells) != 3:
            return Damaged(f"{len(cells)} columns where CausalBank has 3 (connective, before it, after it)")
        connective, before, after = cells
        cause, effect = (after, before) if order == "because" else (before, after)
        return cause, effect, order, connective, "causalbank"

    return parse


def _with_known_order(row: Row) -> Row | Damaged:
    return row if row[2] in ORDERS else Damaged(f"the order is {row[2][:40]!r}, but must be because, so or empty")


def json_keys(line: str) -> list[str]:
    """The keys of the JSON object in a line; none if there is no object."""
    try:
        keys = json.loads(line, object_pairs_hook=lambda pairs: [key for key, _ in pairs])
    except (ValueError, RecursionError):
        return []
    return [str(key) for key in keys]


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("it has the same key twice")
    return record


def _is_plain(value: str) -> bool:
    """Whether the text can be stored: no NUL, and no half of a surrogate pair (JSON can write both)."""
    if "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
