"""Strategies that first ask the model for something: other wordings, dimensions of the answers, or subjects."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

from cod3s.ask.planning import ANSWER_ONLY, Call, Strategy, View
from cod3s.ask.prompts import Prompt
from cod3s.ask.structure import InvalidAnswerError, parse_json
from cod3s.text import is_visible

_WORDINGS, _DIMENSIONS, _VALUES, _SUBJECTS = 5, 3, 4, 20
_MOST_COMBINATIONS = 5_000  # of attributes: what a model lists beyond that is cut
_PREPARATION_TOKENS = 400
_ITEM = re.compile(r"^\s*(?:\d+\s*[.):]|[-*•])?\s*(.+?)\s*$")


class _Prepared(Strategy, ABC):
    """Asks for a preparation first; calls at the same time send the plain prompt."""

    needs_instructions = True
    _request = ""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._is_pending = self._is_ready = False

    def plan(self, prompt: Prompt, view: View) -> Call:
        if self._is_ready:
            return Call(self.name, self._next(prompt, view), self.settings)
        if self._is_pending:
            return Call(self.name, prompt, self.settings)
        self._is_pending = True
        settings = {"samples": 1, "max_tokens": _PREPARATION_TOKENS} if self.traits.has_settings else {}
        request = f"{self._request}\n\nThe request, which you should not answer yet:\n{prompt.text}"
        return Call(self.name, prompt.rewording(request), settings, preparation=True)

    def learn(self, call: Call, texts: Sequence[str], new_bins: int, tokens: int) -> None:
        if call.preparation and not self._is_ready:
            self._is_pending = False  # it failed: ask again

    def prepare(self, text: str) -> bool:
        self._is_pending = self._is_ready = self._take(text)
        return self._is_ready

    @abstractmethod
    def _next(self, prompt: Prompt, view: View) -> Prompt:
        """The prompt of the next call, which the preparation made possible."""

    @abstractmethod
    def _take(self, text: str) -> bool:
        """Keep what the preparation brought; False if it cannot be used."""


class Paraphrase(_Prepared):
    """Send each wording of the prompt in turn, the original first."""

    _request = (
        f"Reword the request below in {_WORDINGS} different ways that ask for exactly the same thing. "
        "Reply with a wording per line and nothing else."
    )
    _wordings: list[str]
    _turn = 0

    def _take(self, text: str) -> bool:
        self._wordings = _lines(text)
        return bool(self._wordings)

    def _next(self, prompt: Prompt, view: View) -> Prompt:
        self._turn += 1
        position = (self._turn - 1) % (len(self._wordings) + 1)
        return prompt if position == 0 else prompt.rewording(self._wordings[position - 1])


class Attributes(_Prepared):
    """Ask for the combination of values that covers most pairs of values that no call has asked for."""

    _request = (
        f"Name {_DIMENSIONS} dimensions in which answers to the request below can differ in meaning, with "
        f"{_VALUES} values each. Reply with JSON and nothing else: "
        '{"dimension": ["value", "value"], "dimension": ["value", "value"]}'
    )
    _combinations: list[tuple[tuple[str, str], ...]]
    _covered: set[tuple[tuple[str, str], ...]]

    def _take(self, text: str) -> bool:
        try:
            content = parse_json(_object_in(text))
        except InvalidAnswerError:
            return False
        values = content if isinstance(content, dict) else {}
        dimensions = [
            [(str(name), str(value)) for value in listed if is_visible(str(value))]
            for name, listed in values.items()
            if isinstance(listed, list)
        ]
        dimensions = [values[: 2 * _VALUES] for values in dimensions if values][: 2 * _DIMENSIONS]
        if not dimensions:
            return False
        combinations_of_values = list(product(*dimensions))
        self.draw.shuffle(combinations_of_values)
        self._combinations = combinations_of_values[:_MOST_COMBINATIONS]
        self._covered = set()
        return True

    def _next(self, prompt: Prompt, view: View) -> Prompt:
        best = max(self._combinations, key=lambda values: len(self._pairs(values) - self._covered))
        if not self._pairs(best) - self._covered:  # all pairs were asked for: begin again, elsewhere
            self._covered.clear()
            best = self.draw.choice(self._combinations)
        self._covered |= self._pairs(best)
        wishes = "\n".join(f"- {name}: {value}" for name, value in best)
        return prompt.adding(f"The answer should be like this:\n{wishes}\n{ANSWER_ONLY}")

    def _pairs(self, values: tuple[tuple[str, str], ...]) -> set[tuple[tuple[str, str], ...]]:
        return set(combinations(values, min(2, len(values))))


class Bins(_Prepared):
    """Hint at the subject that lies farthest, in bits, from all earlier answers and hints."""

    _request = (
        f"Name {_SUBJECTS} very different subjects or ideas that answers to the request below could be about, "
        "each in a few words. Reply with a subject per line and nothing else."
    )
    _subjects: list[str]
    _hinted: list[str]

    def _take(self, text: str) -> bool:
        self._subjects, self._hinted = _lines(text), []
        return bool(self._subjects)

    def _next(self, prompt: Prompt, view: View) -> Prompt:
        if not self._subjects:
            self._subjects, self._hinted = self._hinted, []
        distances = view.distances(self._subjects)
        farthest = max(range(len(self._subjects)), key=lambda number: distances[number])
        subject = self._subjects.pop(farthest)
        self._hinted.append(subject)
        return prompt.adding(f"Give an answer that has to do with: {subject}. {ANSWER_ONLY}")


def _lines(text: str) -> list[str]:
    """The items of a list, whether numbered, as JSON or bare; a line that ends in a colon introduces the list."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = [
            item[1].strip('"“” ')
            for line in text.splitlines()
            if line.strip()[-1:] != ":" and (item := _ITEM.match(line))
        ]
    items = content if isinstance(content, list) else []
    return list(dict.fromkeys(item for item in items if isinstance(item, str) and is_visible(item)))


def _object_in(text: str) -> str:
    """The part of a text from its first brace to its last."""
    return text[text.find("{") : text.rfind("}") + 1] or text
