"""Read the return value of a user's generator: texts with scores, or the reason why it cannot be used."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

from cod3s.errors import Cod3sError
from cod3s.text import is_visible

_FORMS = "return a text, a list of texts, (text, score), or a list of (text, score)"


@dataclass(frozen=True)
class Answered:
    """The visible texts of a call; a score that is missing or not a finite number is None."""

    texts: tuple[str, ...]
    scores: tuple[float | None, ...]


@dataclass(frozen=True)
class Failed:
    """A call that gave nothing, and what went wrong."""

    reason: str
    error: Exception | None = None
    final: bool = False  # asking again would fail in the same way


def read_reply(value: Any, read: Callable[[str], list[str]] | None = None) -> Answered | Failed:
    """The texts and scores in a text, a list of texts, (text, score) or a list of these; else a failure.

    `read` extracts the answers from each text; a score counts only for a text with a single answer.
    """
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()  # or Python would warn that it was never awaited
        raise Cod3sError("the generator is asynchronous", hint="use `await cod3s.diversify_async(…)`")
    try:
        pairs = _pairs(value)
    except TypeError as error:
        return Failed(f"the generator returned {error}; {_FORMS}")
    visible = [(text, score) for text, score in pairs if is_visible(text)]
    if not visible:
        return Failed("the generator returned no text")
    if read is not None:
        answers = [(read(text), score) for text, score in visible]
        visible = [(text, score if len(texts) == 1 else None) for texts, score in answers for text in texts]
        if not visible:
            return Failed(f"there were no answers in the reply, which begins {pairs[0][0][:80]!r}")
    texts, scores = zip(*visible, strict=True)
    return Answered(texts, scores)


def _pairs(value: Any) -> list[tuple[str, float | None]]:
    if value is None:
        return []
    if isinstance(value, str) or _is_scored(value):
        return [_pair(value)]
    if isinstance(value, bytes | dict) or not isinstance(value, Iterable):
        raise TypeError(type(value).__name__)
    return [_pair(item) for item in value]


def _pair(item: Any) -> tuple[str, float | None]:
    if isinstance(item, str):
        return item, None
    if not _is_scored(item):
        raise TypeError(f"a list with {type(item).__name__} in it")
    text, score = item[0], float(item[1])
    return text, score if isfinite(score) else None


def _is_scored(value: Any) -> bool:
    """(text, number); two texts are two answers."""
    return (
        isinstance(value, tuple | list)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], Real)
        and not isinstance(value[1], bool)
    )
