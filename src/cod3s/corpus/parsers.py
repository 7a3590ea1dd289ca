"""One line of a pairs file → the cells of one pair, or why not. Knows nothing about files."""

import json
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from cod3s.corpus.relations import ORDERS
from cod3s.files.lines import Damaged

PAIR_COLUMNS = ("first", "second", "order", "pattern", "corpus")
"""`first` is the cause or the source, `second` the effect or the target."""

Row = tuple[str, ...]  # the cells of PAIR_COLUMNS
Parser = Callable[[str], Row | Damaged]


def extra_columns(names: tuple[str, str], header: Sequence[str]) -> list[str]:
    """The optional columns that are there; an order is only meant where cause and effect are named."""
    known = ("order", "pattern", "corpus") if names == ("cause", "effect") else ("pattern", "corpus")
    return [name for name in known if name in header]


def tsv_parser(header: Sequence[str], names: tuple[str, str]) -> Parser:
    """Cells between tabs, as they are: quotes and backslashes are ordinary characters."""
    width = len(header)
    extra = extra_columns(names, header)
    cell = {name: header.index(name) if name in extra else width for name in PAIR_COLUMNS[2:]}
    pick = itemgetter(*(header.index(name) for name in names), *cell.values())

    def parse(line: str) -> Row | Damaged:
        cells = line.split("\t")
        if len(cells) != width:
            return Damaged(f"{len(cells)} columns where the header has {width}")
        cells.append("")  # what a missing optional column holds
        return _with_known_order(pick(cells))

    return parse


def json_parser(names: tuple[str, str]) -> Parser:
    """One object a line; other keys are ignored."""
    known = (*names, *extra_columns(names, PAIR_COLUMNS))
    wanted = (*names, "order" if "order" in known else "", "pattern", "corpus")

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
    """Connective, what stood before it, what stood after it: effect and cause, or cause and effect."""

    def parse(line: str) -> Row | Damaged:
        cells = line.split("\t")
        if len(cells) != 3:
            return Damaged(f"{len(cells)} columns where CausalBank has 3 (connective, before it, after it)")
        connective, before, after = cells
        cause, effect = (after, before) if order == "because" else (before, after)
        return cause, effect, order, connective, "causalbank"

    return parse


def _with_known_order(row: Row) -> Row | Damaged:
    return row if row[2] in ORDERS else Damaged(f"the order is {row[2][:40]!r}, needed is because, so or nothing")


def json_keys(line: str) -> list[str]:
    """The keys of the object that the line holds; none where it holds no object."""
    try:
        keys = json.loads(line, object_pairs_hook=lambda pairs: [key for key, _ in pairs])
    except (ValueError, RecursionError):
        return []
    return [str(key) for key in keys]


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a key stands there twice")
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
