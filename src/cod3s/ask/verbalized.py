"""Ask for several answers with their probabilities in a reply, as in Verbalized Sampling (Zhang et al. 2025)."""

import json
import re
from collections.abc import Sequence
from typing import Any

from cod3s.ask.planning import Answers, Call, Strategy, View
from cod3s.ask.prompts import Prompt
from cod3s.ask.structure import FENCE, InvalidAnswerError, parse_json
from cod3s.text import is_visible

_EXTRA_TOKENS = 16  # around each answer in a list
_FORM = '[{"text": "…", "probability": 0.1}, …]'
_LIST_OR_OBJECT = re.compile(r"[\[{]")
_OBJECT_OR_STRING = re.compile(r'[{"]')  # a string is read as a whole, because it may hold a brace
_PROBABILITY = r"(?:probability|prob|p)\s*[:=]?\s*"
_TRAILING = re.compile(
    rf"\s*[\[(–—-]*\s*(?:{_PROBABILITY})?~?(?P<number>\d*\.?\d+)\s*(?P<percent>%)?\s*[\])]*\s*$", re.IGNORECASE
)
_ITEM = re.compile(r"^\s*(?:\d+\s*[.):]|[-*•])\s*(?P<text>.+)$")


class Verbalized(Strategy):
    """Lists of answers; with several turns, a reply is followed by the request for more of them."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._conversation: Prompt | None = None
        self._turn = 0
        if self.traits.has_settings:
            tokens = (self.traits.max_tokens + _EXTRA_TOKENS) * self.config.list_size
            self.settings |= {"samples": 1} | ({"max_tokens": tokens} if self.traits.max_tokens else {})
            if self.structure is not None:
                self.settings["response_format"] = self.structure.response_format(self.config.list_size)

    def plan(self, prompt: Prompt, view: View) -> Call:
        size = self.config.list_size
        if self.traits.completes:
            opening = f'{size} different ways to continue the text "{prompt.text}":\n1.'
            return Call(self.name, prompt.rewording(opening), self.settings)
        if self._conversation is not None and self._turn < self.config.turns:
            conversation, self._conversation = self._conversation, None  # calls at the same time start anew
            return Call(self.name, conversation, self.settings)
        self._turn = 0
        form = '{"answers": [{"answer": …, "probability": 0.1}, …]}' if self.structure else f"a list: {_FORM}"
        unlikely = "also unlikely ones"
        if self.config.tail is not None:
            unlikely = f"each from the tails of the distribution, with a probability below {self.config.tail:g}"
        request = (
            f"Give {size} different answers, {unlikely}, each with the probability that you would give it. "
            f"Reply with JSON and nothing else, {form}"
        )
        return Call(self.name, prompt.adding(request), self.settings)

    def read(self, call: Call, text: str) -> Answers:
        if self.structure is not None:
            return _read_records(text)
        return read_verbalized(f"1.{text}" if self.traits.completes else text)

    def learn(self, call: Call, texts: Sequence[str], new_bins: int, tokens: int) -> None:
        if texts:
            request = f"Give {self.config.list_size} more answers that differ from all of these, in the same form."
            self._conversation = call.prompt.continued(texts[-1], request)
            self._turn += 1


def read_verbalized(reply: str) -> Answers:
    """The answers in a reply that should be a JSON list of texts with probabilities, most probable first.

    Models fence the list, stop in the middle of it, or write a numbered list instead; all of these are read. A
    reply that is not a list gives nothing, because it could be mistaken for an answer.
    """
    fenced = FENCE.search(reply)
    body = fenced[1] if fenced else reply
    answers = _json_answers(body) or _listed_answers(body)
    # Stable: without probabilities, they stay in their order.
    answers.sort(key=lambda answer: -(answer[1] or 0.0))
    first: dict[str, float | None] = {}
    for text, probability in answers:
        if is_visible(text):
            first.setdefault(text.strip(), probability)
    return list(first.items())


def _read_records(reply: str) -> Answers:
    """The records in a reply with a list of answers that fit a schema, each as JSON text."""
    content = parse_json(reply)
    items = content.get("answers") if isinstance(content, dict) else content
    if not isinstance(items, list):
        raise InvalidAnswerError("there is no list of answers")
    return [
        (
            json.dumps(item["answer"], ensure_ascii=False)
            if isinstance(item, dict) and "answer" in item
            else json.dumps(item, ensure_ascii=False),
            _number(item.get("probability")) if isinstance(item, dict) else None,
        )
        for item in items
    ]


def _json_answers(body: str) -> Answers:
    """The answers in every complete JSON list or object; a list that breaks off gives the objects before that."""
    decoder = json.JSONDecoder()
    answers: Answers = []
    start = re.search(r"\[", body) or re.search(r"{", body)
    while start:
        try:
            value, end = decoder.raw_decode(body, start.start())
        except (ValueError, RecursionError):
            start = _OBJECT_OR_STRING.search(body, start.end())
        else:
            answers += _answers_in(value)
            start = _LIST_OR_OBJECT.search(body, end)
    return answers


def _answers_in(value: Any) -> Answers:
    if isinstance(value, list):
        return [
            answer
            for item in value
            for answer in (_answers_in(item) if not isinstance(item, str) else [(item, None)])
        ]
    if not isinstance(value, dict):
        return []
    for name in ("text", "answer", "response", "content"):
        if isinstance(value.get(name), str):
            return [(value[name], _number(value.get("probability", value.get("prob"))))]
    return [answer for item in value.values() for answer in _answers_in(item)]


def _listed_answers(body: str) -> Answers:
    """Items of a numbered or bulleted list, with the probability that may end a line."""
    answers: Answers = []
    for line in body.splitlines():
        if item := _ITEM.match(line):
            text, probability = item["text"].strip(), None
            trailing = _TRAILING.search(text)
            if trailing and (trailing["percent"] or re.search(_PROBABILITY, trailing[0], re.IGNORECASE)):
                text = text[: trailing.start()]
                probability = float(trailing["number"]) / (100 if trailing["percent"] else 1)
            answers.append((text.strip().strip('"“”'), probability))
    return answers


def _number(value: Any) -> float | None:
    """A probability written as a number, as text or in percent; None for anything else."""
    try:
        text = str(value).strip()
        number = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None
