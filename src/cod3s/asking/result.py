"""What `diversify` gives back: the choice, everything it was chosen from, and why the asking ended."""

from dataclasses import dataclass

from cod3s.asking.coverage import Coverage
from cod3s.selection import Selection


@dataclass(frozen=True)
class Diversified:
    """`selection` holds the answers; its indices are places in `candidates`, all texts in the order they came.

    `stopped` is `filled` (k lie apart), `exhausted` (more calls would not help), `budget` (all calls were made)
    or `failures` (three calls in a row failed).
    """

    prompt: str
    selection: Selection
    candidates: tuple[str, ...]
    scores: tuple[float, ...] | None
    calls: int
    stopped: str
    coverage: Coverage
    failures: tuple[str, ...]  # what went wrong in each call that brought nothing

    @property
    def texts(self) -> tuple[str, ...]:
        """The chosen answers."""
        return tuple(selected.text for selected in self.selection.selected)
