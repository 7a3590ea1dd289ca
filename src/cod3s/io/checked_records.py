"""Make dataclasses of JSON values whose types are checked, so that a damaged file fails where it is read."""

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


def parse_record(kind: type[Record], content: Any) -> Record:
    """The dataclass `kind` with the values of a JSON object; an error names a value that does not fit."""
    if not isinstance(content, dict):
        raise TypeError("a JSON object is needed")
    hints = _hints(cast(Hashable, kind))
    if unknown := sorted(set(content) - set(hints)):
        raise TypeError(f"it has an unknown field {unknown[0]!r}")
    return kind(**{name: _parse(value, hints[name], name) for name, value in content.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _parse(value: Any, hint: Any, name: str) -> Any:
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return _parse_any(value, parts, name)
    if is_dataclass(kind) and isinstance(kind, type):
        return parse_record(kind, value)
    if kind in (dict, Mapping) and isinstance(value, dict):
        return {_parse(key, parts[0], name): _parse(item, parts[1], name) for key, item in value.items()}
    if kind in (list, tuple) and isinstance(value, list):
        return kind(_parse(item, parts[0], name) for item in value)
    if kind is Literal and value in parts:
        return value
    return value if kind is Any else _checked(value, kind, name)


def _checked(value: Any, kind: Any, name: str) -> Any:
    """A text, a number, a truth value or None, if it is of that kind."""
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError(f"{name} is {type(value).__name__}, but must be {kind.__name__}")
    if kind is str:
        value.encode()  # JSON can hold half of a surrogate pair, which no file or database accepts
    return value


def _parse_any(value: Any, hints: Sequence[Any], name: str) -> Any:
    """The value as the first of several types that it fits."""
    for hint in hints[:-1]:
        with suppress(TypeError, ValueError):
            return _parse(value, hint, name)
    return _parse(value, hints[-1], name)
