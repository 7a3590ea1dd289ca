"""Asking strategies that need one call per answer, and `auto`, which picks among strategies."""

from collections.abc import Sequence
from typing import Any

from cod3s.ask.config import STRATEGIES, DiversifyConfig
from cod3s.ask.planning import ANSWER_ONLY, Answers, Call, Strategy, Traits, View
from cod3s.ask.prepared import Attributes, Bins, Paraphrase
from cod3s.ask.prompts import Prompt
from cod3s.ask.structure import Structure
from cod3s.ask.verbalized import Verbalized
from cod3s.errors import UsageError
from cod3s.options import find_name
from cod3s.text import is_visible

PERSONAS = (
    "You are a farmer who is used to long days and dislikes waste.",
    "You are a curious nine-year-old child.",
    "You are a retired engineer who looks for what can go wrong.",
    "You are a poet who notices small things.",
    "You are a nurse on the night shift.",
    "You are a street trader in a large city.",
    "You are a historian who thinks in centuries.",
    "You are a comedian who likes absurd turns.",
    "You are a chess player who plans ahead.",
    "You are a sailor who has seen many countries.",
    "You are a teacher of a primary school.",
    "You are a frugal grandmother with a large family.",
    "You are a scientist who doubts the obvious.",
    "You are a designer who values simple things.",
    "You are a mountain guide.",
    "You are a musician who travels with a band.",
)
_STEP, _HOTTEST = 0.15, 1.8  # of temperatures; servers accept up to 2
_MOST_LISTED = 30  # earlier answers that a prompt names, so that it stays short
_LISTED_CHARACTERS = 200  # of each of them
_SEED_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_SEED_LENGTH = 24


class Temperature(Strategy):
    """Raise the temperature whenever a call brings nothing new."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._temperature = self.traits.temperature

    def plan(self, prompt: Prompt, view: View) -> Call:
        return Call(self.name, prompt, self.settings | {"temperature": round(self._temperature, 2)})

    def learn(self, call: Call, texts: Sequence[str], new_bins: int, tokens: int) -> None:
        if not new_bins:
            self._temperature = max(self._temperature, min(self._temperature + _STEP, _HOTTEST))


class Avoid(Strategy):
    """List the answers so far and ask for something different."""

    def plan(self, prompt: Prompt, view: View) -> Call:
        if not view.kept:
            return Call(self.name, prompt, self.settings)
        earlier = [_shorten(text) for text in view.kept[-_MOST_LISTED:]]
        if self.traits.completes:
            numbered = "".join(f"{number}. {text}\n" for number, text in enumerate(earlier, start=1))
            opening = f'Different ways to continue the text "{prompt.text}":\n{numbered}{len(earlier) + 1}.'
            return Call(self.name, prompt.rewording(opening), self.settings)
        listed = "\n".join(f"- {text}" for text in earlier)
        request = (
            f"These answers were given already:\n{listed}\n\n"
            f"Give one more answer that means something else. {ANSWER_ONLY}"
        )
        return Call(self.name, prompt.adding(request), self.settings)

    def read(self, call: Call, text: str) -> Answers:
        if not self.traits.completes:
            return [(text, None)]
        return next(([(line.strip(), None)] for line in text.splitlines() if is_visible(line)), [])


class Seed(Strategy):
    """Put a random string into the prompt (String Seed of Thought lets the model write the string)."""

    needs_instructions = True

    def plan(self, prompt: Prompt, view: View) -> Call:
        string = "".join(self.draw.choices(_SEED_CHARACTERS, k=_SEED_LENGTH))
        request = (
            f"Random string: {string}\nMany answers are possible. Let the random string decide which of them you "
            f"give, and do not mention it. {ANSWER_ONLY}"
        )
        return Call(self.name, prompt.adding(request), self.settings)


class Persona(Strategy):
    """Answer as a different person in every call."""

    needs_instructions = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._personas = list(self.config.personas or PERSONAS)
        self.draw.shuffle(self._personas)
        self._next = 0

    def plan(self, prompt: Prompt, view: View) -> Call:
        persona = self._personas[self._next % len(self._personas)]
        self._next += 1
        return Call(self.name, prompt.with_system(persona), self.settings)


class Auto(Strategy):
    """Stay with a strategy while at least half of what it brings is new, and only then try the next one.

    When all have been tried, the best by new bins per token is used; older calls count less.
    """

    def __init__(self, name: str, strategies: Sequence[Strategy]) -> None:
        first = strategies[0]
        super().__init__(name, first.config, first.traits, first.structure)
        self._strategies = {strategy.name: strategy for strategy in strategies}
        self._untried = list(self._strategies)
        self._gains: dict[str, float] = {}
        self._fruitful = ""  # the strategy of the last call, if at least half of its texts were new

    def plan(self, prompt: Prompt, view: View) -> Call:
        if self._untried:
            name = self._fruitful or self._untried[0]
        else:
            name = max(self._gains, key=lambda name: self._gains[name])
        return self._strategies[name].plan(prompt, view)

    def called(self, name: str) -> Strategy | None:
        return self._strategies.get(name)

    def learn(self, call: Call, texts: Sequence[str], new_bins: int, tokens: int) -> None:
        name, gain = call.strategy, new_bins / max(tokens, 1)
        if name in self._untried:
            self._untried.remove(name)
        self._gains[name] = (self._gains[name] + gain) / 2 if name in self._gains else gain
        self._fruitful = name if new_bins and 2 * new_bins >= len(texts) else ""
        self._strategies[name].learn(call, texts, new_bins, tokens)


_CLASSES: dict[str, type[Strategy]] = {
    "resample": Strategy,
    "temperature": Temperature,
    "avoid": Avoid,
    "verbalized": Verbalized,
    "seed": Seed,
    "persona": Persona,
    "paraphrase": Paraphrase,
    "attributes": Attributes,
    "bins": Bins,
}
_FIRST_TRIES = ("resample", "verbalized", "avoid", "temperature")


def open_strategy(config: DiversifyConfig, generate: Any, structure: Structure | None = None) -> Strategy:
    """The strategy that the config names, if the generator can follow it.

    `auto` only repeats the prompt to a plain function, which may not follow instructions.
    """
    name, traits = find_name("strategy", config.strategy, STRATEGIES), Traits.of(generate)
    if name == "temperature" and not traits.has_settings:
        raise UsageError(
            "the strategy 'temperature' cannot change the temperature of this generator",
            hint="use a CompletionServer, or another strategy",
        )
    if name == "auto":
        names = _FIRST_TRIES if traits.has_settings else ("resample",)
        return Auto(name, [_CLASSES[part](part, config, traits, structure) for part in names])
    if _CLASSES[name].needs_instructions and traits.completes:
        raise UsageError(
            f"the strategy {name!r} needs a model that follows instructions, but this one continues text",
            hint="use the chat API, or another strategy",
        )
    return _CLASSES[name](name, config, traits, structure)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LISTED_CHARACTERS else f"{line[:_LISTED_CHARACTERS]}…"
