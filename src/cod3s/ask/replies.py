"""Read the return value of a user's generator: texts with scores, or the reason why it cannot be used."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite
from numbers import Real
from typing import Any

from cod3s.errors import Cod3sError
from cod3s.text import is_visible

_FORMS = "return a text, a list of texts, (text, score), or a list of (text, score)"


@dataclass(frozen=True)
class Tokens:
    """The cost of calls; `estimated` at four characters per token if a server did not count."""

    prompt: int = 0
    completion: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        return self.prompt + self.completion

    def __add__(self, more: "Tokens") -> "Tokens":
        estimated = self.estimated or more.estimated
        return Tokens(self.prompt + more.prompt, self.completion + more.completion, estimated)


@dataclass(frozen=True)
class Reply:
    """The visible texts of a call with the generator's own scores, or the reason why there are none."""

    texts: tuple[str, ...] = ()
    scores: tuple[float | None, ...] = ()  # None where a score is missing or not a finite number
    tokens: Tokens | None = None  # None if the generator does not count them
    failure: str = ""
    final: bool = False  # asking again would fail in the same way
    error: Exception | None = field(default=None, compare=False, repr=False)


def read_reply(value: Any) -> Reply:
    """The texts and scores in a reply, a text, a list of texts, (text, score) or a list of these."""
    if isinstance(value, Reply):
        pairs, tokens = list(zip(value.texts, value.scores, strict=True)), value.tokens
    else:
        try:
            pairs, tokens = _pairs(value), None
        except TypeError as error:
            return Reply(failure=f"the generator returned {error}; {_FORMS}")
    visible = [(text, score) for text, score in pairs if is_visible(text)]
    if not visible:
        return Reply(failure="the generator returned no text", tokens=tokens)
    texts, scores = zip(*visible, strict=True)
    return Reply(texts, scores, tokens)


def failed_reply(error: Exception) -> Reply:
    """The reply of a call that raised an error."""
    reason = error.message if isinstance(error, Cod3sError) else f"{type(error).__name__}: {error}"
    return Reply(failure=reason, final=getattr(error, "final", False), error=error)


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
