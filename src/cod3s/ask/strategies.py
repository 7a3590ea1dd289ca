"""Asking strategies: what each call sends, given the earlier answers."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cod3s.errors import UsageError
from cod3s.options import find_name
from cod3s.text import is_visible

STRATEGIES = {
    "resample": "send the same prompt again",
    "temperature": "raise the temperature whenever a call brings nothing new",
    "avoid": "tell the model what has been said and ask for something different",
    "verbalized": "ask for several answers with their probabilities in a single reply",
    "auto": "resample while that brings new answers, then try the others and use whichever brings the most",
}
_STEP, _HOTTEST = 0.15, 1.8  # of temperatures; servers accept up to 2
_MOST_LISTED = 30  # earlier answers that a prompt names, so that it stays short
_LISTED_CHARACTERS = 200  # of each of them
_VERBALIZED = 5  # answers per reply, as in Verbalized Sampling (Zhang et al. 2025)
_FIRST_TRIES = ("resample", "verbalized", "avoid", "temperature")


@dataclass(frozen=True)
class Call:
    """One call to make: the prompt, how to read a reply, and settings that differ from the generator's."""

    strategy: str
    prompt: str
    read: Callable[[str], list[str]] = field(default=lambda text: [text], compare=False)
    settings: dict[str, Any] = field(default_factory=dict)


class Strategy:
    """Plans each call, and may learn from the texts and new bins that it brought. This one repeats the prompt.

    `completes`: the model continues a text and follows no instructions.
    """

    def __init__(self, name: str, completes: bool) -> None:
        self.name, self._completes = name, completes

    def plan(self, prompt: str, kept: list[str]) -> Call:
        return Call(self.name, prompt)

    def learn(self, call: Call, texts: int, new_bins: int, tokens: int) -> None:
        pass


def open_strategy(name: str, generate: Any) -> Strategy:
    """The strategy called `name`; `temperature` needs a generator with settings that can be changed."""
    find_name("strategy", name, STRATEGIES)
    adjustable = hasattr(generate, "adjusted")
    if name == "temperature" and not adjustable:
        raise UsageError(
            "the strategy 'temperature' cannot change the temperature of this generator",
            hint="use a CompletionServer, or another strategy",
        )
    completes = getattr(generate, "chat", True) is False
    if name == "auto":
        names = [part for part in _FIRST_TRIES if adjustable or part != "temperature"]
        return _Auto(name, completes, [open_strategy(part, generate) for part in names])
    if name == "temperature":
        return _Temperature(name, completes, float(getattr(generate, "temperature", 1.0)))
    if name == "avoid":
        return _Avoid(name, completes)
    if name == "verbalized":
        return _Verbalized(name, completes, int(getattr(generate, "max_tokens", 0)))
    return Strategy(name, completes)


class _Temperature(Strategy):
    def __init__(self, name: str, completes: bool, temperature: float) -> None:
        super().__init__(name, completes)
        self._temperature = temperature

    def plan(self, prompt: str, kept: list[str]) -> Call:
        return Call(self.name, prompt, settings={"temperature": round(self._temperature, 2)})

    def learn(self, call: Call, texts: int, new_bins: int, tokens: int) -> None:
        if not new_bins:
            self._temperature = max(self._temperature, min(self._temperature + _STEP, _HOTTEST))


class _Avoid(Strategy):
    def plan(self, prompt: str, kept: list[str]) -> Call:
        if not kept:
            return Call(self.name, prompt)
        earlier = [_shorten(text) for text in kept[-_MOST_LISTED:]]
        if self._completes:
            numbered = "".join(f"{number}. {text}\n" for number, text in enumerate(earlier, start=1))
            opening = f'Different ways to continue the text "{prompt}":\n{numbered}{len(earlier) + 1}.'
            return Call(self.name, opening, read=_first_line)
        listed = "\n".join(f"- {text}" for text in earlier)
        request = (
            f"{prompt}\n\nThese answers were given already:\n{listed}\n\n"
            "Give one more answer that means something else. Reply with the answer only."
        )
        return Call(self.name, request)


class _Verbalized(Strategy):
    def __init__(self, name: str, completes: bool, max_tokens: int) -> None:
        super().__init__(name, completes)
        # One reply holds all answers, each with some words around it.
        self._settings: dict[str, Any] = (
            {"samples": 1, "max_tokens": (max_tokens + 16) * _VERBALIZED} if max_tokens else {}
        )

    def plan(self, prompt: str, kept: list[str]) -> Call:
        if self._completes:
            opening = f'{_VERBALIZED} different ways to continue the text "{prompt}":\n1.'
            return Call(
                self.name, opening, read=lambda text: read_verbalized(f"1.{text}"), settings=self._settings
            )
        request = (
            f"{prompt}\n\nGive {_VERBALIZED} different answers, also unlikely ones, each with the probability "
            "that you would give it. Reply with a JSON list and nothing else: "
            '[{"text": "…", "probability": 0.1}, …]'
        )
        return Call(self.name, request, read=read_verbalized, settings=self._settings)


class _Auto(Strategy):
    """Stay with a strategy while at least half of what it brings is new, and only then try the next one.

    When all have been tried, the best by new bins per token is used; older calls count less.
    """

    def __init__(self, name: str, completes: bool, strategies: list[Strategy]) -> None:
        super().__init__(name, completes)
        self._strategies = {strategy.name: strategy for strategy in strategies}
        self._untried = list(self._strategies)
        self._gains: dict[str, float] = {}
        self._fruitful = ""  # the strategy of the last call, if at least half of its texts were new

    def plan(self, prompt: str, kept: list[str]) -> Call:
        if self._untried:
            name = self._fruitful or self._untried[0]
        else:
            name = max(self._gains, key=lambda name: self._gains[name])
        return self._strategies[name].plan(prompt, kept)

    def learn(self, call: Call, texts: int, new_bins: int, tokens: int) -> None:
        name, gain = call.strategy, new_bins / max(tokens, 1)
        if name in self._untried:
            self._untried.remove(name)
        self._gains[name] = (self._gains[name] + gain) / 2 if name in self._gains else gain
        self._fruitful = name if new_bins and 2 * new_bins >= texts else ""
        self._strategies[name].learn(call, texts, new_bins, tokens)


_LIST_OR_OBJECT = re.compile(r"[\[{]")
_OBJECT_OR_STRING = re.compile(r'[{"]')  # a string is read as a whole, because it may hold a brace
_FENCE = re.compile(r"```(?:\w+)?\s*(.*?)```", re.DOTALL)
_PROBABILITY = r"(?:probability|prob|p)\s*[:=]?\s*"
_TRAILING = re.compile(
    rf"\s*[\[(–—-]*\s*(?:{_PROBABILITY})?~?(?P<number>\d*\.?\d+)\s*(?P<percent>%)?\s*[\])]*\s*$", re.IGNORECASE
)
_ITEM = re.compile(r"^\s*(?:\d+\s*[.):]|[-*•])\s*(?P<text>.+)$")


def read_verbalized(reply: str) -> list[str]:
    """The answers in a reply that should be a JSON list of texts with probabilities, most probable first.

    Models fence the list, stop in the middle of it, or write a numbered list instead; all of these are read. A
    reply that is not a list gives nothing, because it could be mistaken for an answer.
    """
    fenced = _FENCE.search(reply)
    body = fenced[1] if fenced else reply
    answers = _json_answers(body) or _listed_answers(body)
    answers.sort(key=lambda answer: -answer[1])  # stable: without probabilities, in their original order
    return list(dict.fromkeys(text.strip() for text, _ in answers if is_visible(text)))


def _json_answers(body: str) -> list[tuple[str, float]]:
    """The answers in every complete JSON list or object; a list that breaks off gives the objects before that."""
    decoder, answers = json.JSONDecoder(), []
    start = re.search(r"\[", body) or re.search(r"{", body)
    while start:
        try:
            value, end = decoder.raw_decode(body, start.start())
        except ValueError:
            start = _OBJECT_OR_STRING.search(body, start.end())
        else:
            answers += _answers_in(value)
            start = _LIST_OR_OBJECT.search(body, end)
    return answers


def _answers_in(value: Any) -> list[tuple[str, float]]:
    if isinstance(value, list):
        return [
            answer
            for item in value
            for answer in (_answers_in(item) if not isinstance(item, str) else [(item, 0.0)])
        ]
    if not isinstance(value, dict):
        return []
    for name in ("text", "answer", "response", "content"):
        if isinstance(value.get(name), str):
            return [(value[name], _number(value.get("probability", value.get("prob", 0))))]
    return [answer for item in value.values() for answer in _answers_in(item)]


def _listed_answers(body: str) -> list[tuple[str, float]]:
    """Items of a numbered or bulleted list, with the probability that may end a line."""
    answers = []
    for line in body.splitlines():
        if item := _ITEM.match(line):
            text, probability = item["text"].strip(), 0.0
            trailing = _TRAILING.search(text)
            if trailing and (trailing["percent"] or re.search(_PROBABILITY, trailing[0], re.IGNORECASE)):
                text = text[: trailing.start()]
                probability = float(trailing["number"]) / (100 if trailing["percent"] else 1)
            answers.append((text.strip().strip('"“”'), probability))
    return answers


def _number(value: Any) -> float:
    """A probability written as a number, as text or in percent; 0 for anything else."""
    try:
        text = str(value).strip()
        return float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return 0.0


def _first_line(text: str) -> list[str]:
    return next(([line.strip()] for line in text.splitlines() if is_visible(line)), [])


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LISTED_CHARACTERS else f"{line[:_LISTED_CHARACTERS]}…"
