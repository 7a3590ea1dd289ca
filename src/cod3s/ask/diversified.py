"""The result of `diversify`: the chosen answers, all candidates, and why the asking ended."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cod3s.ask.coverage import Coverage
from cod3s.records import ResultSet
from cod3s.selection import Selected, Selection


@dataclass(frozen=True)
class Tokens:
    """The cost of the calls; `estimated` at four characters per token if a server did not count."""

    prompt: int = 0
    completion: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        return self.prompt + self.completion

    def __add__(self, more: "Tokens") -> "Tokens":
        estimated = self.estimated or more.estimated
        return Tokens(self.prompt + more.prompt, self.completion + more.completion, estimated)


@dataclass(frozen=True, repr=False)
class Diversified(ResultSet[Selected]):
    """`selection` holds the answers; their indices are positions in `candidates`, all texts in order.

    `stopped` is `filled` (k differ), `exhausted` (more calls would not help), `budget` (all calls were made),
    `tokens` (the token budget is spent) or `failures` (three calls in a row failed, or a call failed for good).
    """

    prompt: str
    selection: Selection
    candidates: tuple[str, ...]
    scores: tuple[float, ...] | None
    calls: int
    stopped: str
    coverage: Coverage
    failures: tuple[str, ...]  # what went wrong in each call that gave nothing
    strategies: tuple[str, ...] = ()  # the strategy of each call
    tokens: Tokens | None = None  # None if the generator does not count them

    def _all(self) -> Sequence[Selected]:
        return self.selection.selected

    def _with(self, items: Sequence[Selected]) -> Any:
        return replace(self, selection=replace(self.selection, selected=tuple(items)))

    def _title(self) -> str:
        return f"{len(self)} of {self.selection.k} answers, {self.calls} calls, {self.stopped}"
