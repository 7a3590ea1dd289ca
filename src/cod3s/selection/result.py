"""The result of a selection."""

from dataclasses import dataclass

from cod3s.records import ResultSet


@dataclass(frozen=True)
class Selected:
    """A chosen candidate: its position in the list, and the positions of those it stands for."""

    text: str
    signature: str
    score: float | None
    index: int
    duplicates: tuple[int, ...]  # not chosen, and within `min_hamming` bits; the nearest chosen one has them


@dataclass(frozen=True, repr=False)
class Selection(ResultSet[Selected]):
    """The chosen candidates, best first; the record of `select --json`."""

    k: int  # as asked; fewer are selected where there are fewer candidates
    method: str  # what ran: never `auto`
    selected: tuple[Selected, ...]
    settings: dict[str, str | int | float | bool]
    blank: tuple[int, ...] = ()  # candidates with nothing visible in them: never selected
    remarks: tuple[str, ...] = ()

    _items = "selected"

    def _title(self) -> str:
        return f"{len(self)} by {self.method}"
