"""The result of a selection, and what every list of chosen texts offers in Python and in a notebook."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, overload

from cod3s.errors import require

_REPR_CHARACTERS = 60


@dataclass(frozen=True)
class Selected:
    """A chosen candidate: its position in the list, and the positions of those it stands for."""

    text: str
    signature: str
    score: float | None
    index: int
    duplicates: tuple[int, ...]  # not chosen, and within `min_hamming` bits; the nearest chosen one has them


class ChosenList:
    """A result that behaves like a list of its chosen texts; a subclass says which they are."""

    @property
    def chosen(self) -> tuple[Selected, ...]:
        """The chosen candidates, in their order."""
        raise NotImplementedError

    @property
    def texts(self) -> tuple[str, ...]:
        """The chosen texts."""
        return tuple(candidate.text for candidate in self.chosen)

    def __len__(self) -> int:
        return len(self.chosen)

    def __iter__(self) -> Iterator[Selected]:
        return iter(self.chosen)

    @overload
    def __getitem__(self, position: int) -> Selected: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[Selected, ...]: ...
    def __getitem__(self, position: int | slice) -> Selected | tuple[Selected, ...]:
        return self.chosen[position]

    def to_dict(self) -> dict[str, Any]:
        """The record that `--json` prints, as plain values."""
        record: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return record

    def to_json(self) -> str:
        """The record that `--json` prints, on one line."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_pandas(self) -> Any:
        """A DataFrame with a row per chosen text."""
        pandas = require("pandas", "pandas")
        return pandas.DataFrame([asdict(candidate) for candidate in self.chosen], columns=list(_COLUMNS))

    def __repr__(self) -> str:
        shown = f"{self.texts[0]!r}" if self.texts else ""
        shown = shown if len(shown) <= _REPR_CHARACTERS else f"{shown[: _REPR_CHARACTERS - 1]}…"
        more = f", … {len(self) - 1} more" if len(self) > 1 else ""
        return f"<{self._summary()}: {shown}{more}>" if shown else f"<{self._summary()}>"

    def _repr_html_(self) -> str:
        rows = "".join(_html_row(number, candidate) for number, candidate in enumerate(self.chosen, start=1))
        return (
            f"<table><caption>{escape(self._summary())}</caption>"
            "<thead><tr><th>#</th><th>text</th><th>score</th><th>stands for</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )

    def _summary(self) -> str:
        return type(self).__name__


_COLUMNS = ("text", "signature", "score", "index", "duplicates")


def _html_row(number: int, candidate: Selected) -> str:
    score = "" if candidate.score is None else f"{candidate.score:.3f}"
    cells: Sequence[str] = (str(number), escape(candidate.text), score, str(len(candidate.duplicates) or ""))
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


@dataclass(frozen=True, repr=False)
class Selection(ChosenList):
    """The chosen candidates, best first; the record of `select --json`."""

    k: int  # as asked; fewer are selected where there are fewer candidates
    method: str  # what ran: never `auto`
    selected: tuple[Selected, ...]
    settings: dict[str, str | int | float | bool]
    blank: tuple[int, ...] = ()  # candidates with nothing visible in them: never selected
    remarks: tuple[str, ...] = ()

    @property
    def chosen(self) -> tuple[Selected, ...]:
        return self.selected

    def _summary(self) -> str:
        return f"Selection of {len(self)} by {self.method}"
