"""The base of all asking strategies: they plan calls, read their replies, and may learn from them."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cod3s.ask.config import DiversifyConfig
from cod3s.ask.prompts import Prompt
from cod3s.ask.structure import Structure

ANSWER_ONLY = "Reply with the answer only."

Answers = list[tuple[str, float | None]]
"""Texts with their probabilities, as far as the model stated any."""


@dataclass(frozen=True)
class Call:
    """A call to make: the prompt, and settings that differ from the generator's.

    A `preparation` asks for something that the strategy needs, and brings no answers. A `repair` asks once more
    for an answer that was invalid.
    """

    strategy: str
    prompt: Prompt
    settings: dict[str, Any] = field(default_factory=dict)
    preparation: bool = False
    repair: bool = False


@dataclass(frozen=True)
class View:
    """The earlier answers, as a strategy sees them."""

    kept: Sequence[str]  # an answer per bin, in the order in which the bins were first seen
    distances: Callable[[Sequence[str]], Sequence[int]]  # bits from each text to the nearest earlier answer


@dataclass(frozen=True)
class Traits:
    """The abilities of a generator."""

    completes: bool  # it continues a text and follows no instructions
    has_settings: bool  # calls may change its settings
    temperature: float
    max_tokens: int  # per answer; 0 if unknown

    @staticmethod
    def of(generate: Any) -> "Traits":
        return Traits(
            completes=getattr(generate, "chat", True) is False,
            has_settings=hasattr(generate, "ask"),
            temperature=float(getattr(generate, "temperature", 1.0)),
            max_tokens=int(getattr(generate, "max_tokens", 0)),
        )


class Strategy:
    """Plans each call, and may learn from the texts and new bins that it brought. This one repeats the prompt."""

    needs_instructions = False  # it does not work on a model that only continues text

    def __init__(self, name: str, config: DiversifyConfig, traits: Traits, structure: Structure | None) -> None:
        self.name, self.config, self.traits, self.structure = name, config, traits, structure
        self.draw = random.Random(config.seed)
        self.settings: dict[str, Any] = {}
        if structure is not None and traits.has_settings:
            self.settings["response_format"] = structure.response_format()

    def called(self, name: str) -> "Strategy | None":
        """The strategy of this name: itself, or one that it uses."""
        return self if name == self.name else None

    def plan(self, prompt: Prompt, view: View) -> Call:
        """The next call."""
        return Call(self.name, prompt, self.settings)

    def read(self, call: Call, text: str) -> Answers:
        """The answers in a text that the call brought."""
        return [(text, None)]

    def learn(self, call: Call, texts: Sequence[str], new_bins: int, tokens: int) -> None:
        """Take note of the texts of a call, how many bins they filled, and what they cost."""

    def prepare(self, text: str) -> bool:
        """Take what a preparation brought; False if it cannot be used."""
        return True
