"""What a selection gives back. Values only."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Selected:
    """One chosen candidate: its place in the list given, and the places of those it stands for."""

    text: str
    signature: str
    score: float | None
    index: int
    duplicates: tuple[
        int, ...
    ]  # not chosen, and within `min_hamming` bits of this one; the nearest chosen has them


@dataclass(frozen=True)
class Selection:
    """The chosen candidates, best first; the record of `select --json`."""

    k: int  # as asked; fewer are selected where there are fewer candidates
    method: str
    selected: tuple[Selected, ...]
    settings: dict[str, str | int | float | bool]
    blank: tuple[int, ...] = ()  # candidates with nothing visible in them: never selected
    remarks: tuple[str, ...] = ()
