"""Damage valid files: bytes flipped, cut, copied and spliced, and values of JSON replaced by unfit ones."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**31, 2**63, 2**70, 1e308, float("nan"), float("inf"), "", "..", "../../etc/passwd",
    "/etc/passwd", "\0", "\ud800", "a" * 5000, [], {}, [[[[]]]], {"": {}}, [None], "💥", "1e9",
)  # fmt: skip
_ODD_BYTES = (
    b"\0",
    b"\xff",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\0" * 8,
    b"\n",
    b'"',
    b"{",
    b"<!",
    b"]]>",
)
_DEEP = 100_000


def damage(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """The content after one to three ways of damage; `others` are valid files to splice it with."""
    for _ in range(draw.choice((1, 1, 2, 3))):
        content = draw.choice(_WAYS)(content, draw, others)
    return content


def _flip(content: bytes, draw: random.Random, _others: Sequence[bytes]) -> bytes:
    flipped = bytearray(content)
    for _ in range(draw.choice((1, 1, 4, 32)) if flipped else 0):
        flipped[_position(content, draw) % len(flipped)] ^= 1 << draw.randrange(8)
    return bytes(flipped)


def _overwrite(content: bytes, draw: random.Random, _others: Sequence[bytes]) -> bytes:
    start, odd = _position(content, draw), draw.choice(_ODD_BYTES)
    return content[:start] + odd + content[start + len(odd) :]


def _insert(content: bytes, draw: random.Random, _others: Sequence[bytes]) -> bytes:
    start = _position(content, draw)
    return content[:start] + draw.choice((*_ODD_BYTES, draw.randbytes(draw.randrange(1, 40)))) + content[start:]


def _cut(content: bytes, draw: random.Random, _others: Sequence[bytes]) -> bytes:
    return content[: _position(content, draw)]


def _remove(content: bytes, draw: random.Random, _others: Sequence[bytes]) -> bytes:
    start = _position(content, draw)
    return content[:start] + content[start + draw.choice((1, 4, 100, 4096)) :]


def _repeat(content: bytes, draw: random.Random, _others: Sequence[bytes]) -> bytes:
    start = _position(content, draw)
    part = content[start : start + draw.choice((1, 10, 300))]
    return content[:start] + part * draw.choice((2, 3, 500)) + content[start:]


def _splice(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    other = draw.choice(others)
    return content[: _position(content, draw)] + other[_position(other, draw) :]


def _odd_value(content: bytes, draw: random.Random, others: Sequence[bytes]) -> bytes:
    """One value of a JSON file, or of one JSON line, replaced; other files are flipped."""
    lines = content.split(b"\n")
    number = draw.randrange(len(lines))
    for whole in (True, False):
        try:
            value = json.loads(content if whole else lines[number])
        except (ValueError, RecursionError):
            continue
        changed = json.dumps(_replaced(value, draw)).encode()
        return changed if whole else b"\n".join([*lines[:number], changed, *lines[number + 1 :]])
    return _flip(content, draw, others)


def _replaced(value: Any, draw: random.Random) -> Any:
    """The value with one of its parts (or all of it) odd, missing, renamed or one too many."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        name = draw.choice([*value])
        if draw.random() < 0.15:
            return {**{key: part for key, part in value.items() if key != name}, **draw.choice(({}, {"odd": 1}))}
        if draw.random() < 0.1:
            return {(draw.choice(("..", "", "a/b", "\0")) if key == name else key): value[key] for key in value}
        return {**value, name: _replaced(value[name], draw)}
    if isinstance(value, list) and value and draw.random() < 0.9:
        number = draw.randrange(len(value))
        return [*value[:number], *draw.choice(([], [_replaced(value[number], draw)])), *value[number + 1 :]]
    return draw.choice(ODD_VALUES)


def _nest(content: bytes, draw: random.Random, _others: Sequence[bytes]) -> bytes:
    """Brackets deeper than any parser's stack, at the start or inside."""
    deep = draw.choice((b"[", b'{"a":', b"<a>")) * _DEEP
    start = draw.choice((0, _position(content, draw)))
    return content[:start] + deep + content[start:]


def _position(content: bytes, draw: random.Random) -> int:
    """Any position; often one near the start or the end, where formats keep their lengths."""
    near = min(len(content), 200)
    return draw.choice(
        (draw.randint(0, len(content)), draw.randint(0, near), len(content) - draw.randint(0, near))
    )


Way = Callable[[bytes, random.Random, Sequence[bytes]], bytes]
_WAYS: tuple[Way, ...] = (
    *(_flip, _flip, _flip, _overwrite, _overwrite, _insert, _cut, _remove, _repeat, _splice),
    *(_odd_value, _odd_value, _odd_value, _nest),
)
