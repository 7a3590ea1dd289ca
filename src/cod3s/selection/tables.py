"""Tables of other libraries (pandas, Polars, datasets): read columns, take rows, without importing any of them."""

from collections.abc import Iterable, Sequence
from math import isnan
from typing import Any

import numpy as np

from cod3s.errors import UsageError, did_you_mean
from cod3s.selection.candidates import Rows

JOINT = "\n"  # between the texts of several columns


def is_table(value: Any) -> bool:
    """Whether a value has named columns."""
    return hasattr(value, "columns") or hasattr(value, "column_names")


def column_of(table: Any, name: str) -> list[Any]:
    """A column of a table as a list."""
    names = [str(column) for column in getattr(table, "column_names", None) or list(table.columns)]
    if name not in names:
        raise UsageError(f"the table has no column {name!r}", hint=did_you_mean(name, names))
    values = table[name]
    return list(values.to_pylist() if hasattr(values, "to_pylist") else values)


def texts_of(table: Any, column: str | Sequence[str] | None) -> list[str]:
    """The text of each row: a column, or several joined; missing values are empty."""
    names = [column] if isinstance(column, str) else list(column or ["text"])
    columns = [[_text(value, name, row) for row, value in enumerate(column_of(table, name))] for name in names]
    return [join(cells) for cells in zip(*columns, strict=True)]


def join(cells: Iterable[str]) -> str:
    """The texts of several columns as one."""
    return JOINT.join(filter(None, cells))


def take(table: Any, rows: Sequence[int]) -> Any:
    """These rows of a table, in the same type, with the index of a pandas frame."""
    if hasattr(table, "iloc"):  # pandas
        return table.iloc[list(rows)]
    if hasattr(table, "features"):  # datasets
        return table.select(list(rows))
    return table.take(list(rows)) if hasattr(table, "column_names") else table[list(rows)]  # Arrow; Polars


def groups_of(values: Iterable[Any], count: int) -> dict[Any, Rows]:
    """The positions of each value, in the order of their first appearance."""
    listed = list(values)
    if len(listed) != count:
        raise UsageError(f"{len(listed)} groups were given for {count} candidates", hint="give one per candidate")
    groups: dict[Any, list[int]] = {}
    for position, value in enumerate(listed):
        try:
            groups.setdefault(value, []).append(position)
        except TypeError:  # lists and objects of JSON
            groups.setdefault(repr(value), []).append(position)
    return {value: np.array(positions, np.intp) for value, positions in groups.items()}


def _text(value: Any, name: str, row: int) -> str:
    if value is None or (isinstance(value, float) and isnan(value)):  # missing in a frame
        return ""
    if not isinstance(value, str):
        raise UsageError(
            f"row {row} of column {name!r} is {type(value).__name__}, but text is needed",
            hint="name a column of texts with column=",
        )
    return value
