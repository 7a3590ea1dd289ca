"""Score answers: by a function of prompt and answer, or by asking a model to judge them.

Scores are weighed against difference by `cod3s.select`, whose formula is in docs/diversify.md.
"""

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any

from cod3s.ask.limits import Meter
from cod3s.ask.replies import Tokens
from cod3s.ask.running import call
from cod3s.ask.server import CompletionServer
from cod3s.errors import Cod3sError, UsageError

Score = Callable[[str, Any], Any]
"""A function of the prompt and an answer (the record if there is a schema) to a number: higher is better.

It may be a coroutine function, and may return the number with the Tokens that it took.
"""

JUDGE_PROMPT = (
    "Rate how good the answer to the request is, from 0 (useless or wrong) to 10 (excellent). "
    "Reply with the number only.\n\nRequest:\n{prompt}\n\nAnswer:\n{answer}"
)
_SLOT = re.compile(r"\{(prompt|answer)\}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Scored:
    """The score of an answer, or the reason why there is none; `tokens` if a model was asked."""

    value: float | None
    reason: str = ""
    tokens: Tokens | None = None


def name_of(score: Score) -> str:
    """The name of a score function, by which a later run knows its scores."""
    name = (
        getattr(score, "name", None)
        or f"{score.__module__}:{getattr(score, '__qualname__', type(score).__qualname__)}"
    )
    return str(name)


async def score_answers(score: Score, prompt: str, answers: Sequence[Any], meter: Meter) -> list[Scored]:
    """The score of each answer, side by side; the calls to a judge count towards the limits of the run."""
    return list(await asyncio.gather(*(_score(score, prompt, answer, meter) for answer in answers)))


async def _score(score: Score, prompt: str, answer: Any, meter: Meter) -> Scored:
    if not isinstance(score, Judge):
        return await _value(score, prompt, answer)
    if not await meter.admit():
        return Scored(None, "a limit of the run was reached")
    scored = Scored(None)
    try:
        scored = await _value(score, prompt, answer)
    finally:
        meter.settle(scored.tokens)
    return scored


async def _value(score: Score, prompt: str, answer: Any) -> Scored:
    tokens = None
    try:
        value = await call(score, prompt, answer)
        if isinstance(value, tuple):
            value, tokens = value
        number = float(value)
    except Exception as error:  # the user's function, or a server
        reason = error.message if isinstance(error, Cod3sError) else f"{type(error).__name__}: {error}"
        return Scored(None, reason, tokens)
    return Scored(number, tokens=tokens) if isfinite(number) else Scored(None, f"the score is {number}", tokens)


def load_score(entry: str) -> Score:
    """The function that `module:function` names; modules in the current folder count, too."""
    module, _, function = entry.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        score: Score = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"the score {entry!r} cannot be loaded: {error}",
            hint="name critic, judge, or a function as module:function",
        ) from error
    finally:
        sys.path.pop(0)
    return score


@dataclass(frozen=True)
class Judge:
    """A score from 0 to 1: a model is asked to rate the answer from 0 to 10."""

    server: CompletionServer
    prompt: str = JUDGE_PROMPT

    @property
    def name(self) -> str:
        """Tells the scores of this judge from others."""
        return f"judge:{self.server.model}:{self.prompt}"

    def __post_init__(self) -> None:
        if "{answer}" not in self.prompt:
            raise UsageError(
                "the judge's prompt does not contain {answer}", hint="for example: Rate from 0 to 10: {answer}"
            )

    async def __call__(self, prompt: str, answer: Any) -> tuple[float, Tokens]:
        values = {"prompt": prompt, "answer": str(answer)}
        request = _SLOT.sub(lambda slot: values[slot[1]], self.prompt)
        reply = await self.server.ask(request, samples=1, temperature=0.0)
        number = _NUMBER.search(reply.texts[0]) if reply.texts else None
        if number is None:
            text = reply.texts[0][:80] if reply.texts else ""
            raise Cod3sError(f"the judge did not reply with a number, but with {text!r}")
        return min(float(number[0]), 10.0) / 10, reply.tokens or Tokens()
