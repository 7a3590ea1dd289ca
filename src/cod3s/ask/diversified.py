"""The result of `diversify`: the chosen answers, all candidates, and why the asking ended."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cod3s.ask.coverage import Coverage
from cod3s.ask.prompts import Message
from cod3s.ask.replies import Tokens
from cod3s.ask.structure import Structure
from cod3s.records import ResultSet
from cod3s.selection import Selected, Selection


@dataclass(frozen=True)
class Candidate:
    """An answer that a call brought; with a schema, `text` is what is compared and `record` the whole answer."""

    text: str
    score: float | None = None
    probability: float | None = None  # as the model stated it (verbalized)
    call: int = 0
    record: Any = None


@dataclass(frozen=True)
class Measured:
    """How many of some answers differ in more than `min_hamming` bits, and their mean score."""

    answers: int
    distinct: int
    quality: float | None


@dataclass(frozen=True, repr=False)
class Diversified(ResultSet[Selected]):
    """`selection` holds the answers; their indices are positions in `candidates`, all answers in order.

    `stopped` is `filled` (k differ), `exhausted` (more calls would not help), `budget` (all calls were made),
    `tokens` (the token budget is spent), `limit` (a limit of the whole run is reached), `failures` (three calls in
    a row failed, or a call failed for good) or `select_only` (no calls were to be made).
    """

    prompt: str | tuple[Message, ...]
    selection: Selection
    candidates: tuple[Candidate, ...]
    calls: int
    stopped: str
    coverage: Coverage
    before: Measured  # the first k answers, as plain asking would have kept them
    after: Measured
    failures: tuple[str, ...]  # what went wrong in each call that gave nothing
    strategies: tuple[str, ...] = ()  # the strategy of each call
    tokens: Tokens | None = None  # None if the generator does not count them
    structure: Structure | None = field(default=None, compare=False)

    @property
    def records(self) -> tuple[Any, ...]:
        """The chosen answers whole: JSON values, or instances of the pydantic model that was the schema."""
        records = [self.candidates[answer.index].record for answer in self]
        return tuple(records if self.structure is None else map(self.structure.typed, records))

    @property
    def scores(self) -> tuple[float | None, ...]:
        """The score of each candidate."""
        return tuple(candidate.score for candidate in self.candidates)

    def to_dict(self) -> dict[str, Any]:
        """The record that `--json` prints."""
        content = super(Diversified, replace(self, structure=None)).to_dict()
        del content["structure"]
        return content

    def _all(self) -> Sequence[Selected]:
        return self.selection.selected

    def _with(self, items: Sequence[Selected]) -> Any:
        return replace(self, selection=replace(self.selection, selected=tuple(items)))

    def _title(self) -> str:
        calls = "1 call" if self.calls == 1 else f"{self.calls} calls"
        return f"{len(self)} of {self.selection.k} answers, {calls}, {self.stopped}"
