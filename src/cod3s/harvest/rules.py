"""Define what a rule for a cue is: where the cue is, what surrounds it, and what the rule decides.

The rules of a cue are tried from top to bottom, traps first. The first rule that fits decides: a trap refuses the
cue with a reason, a pattern says which side is the cause.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

Order = Literal["because", "so"]
Wariness = Literal["none", "effect", "both"]


class Shape(Enum):
    """Where the two sides are around the cue."""

    BETWEEN = "first CUE second"
    OPENING = "CUE first, second"
    NEXT = "First. CUE second"


class Position(Enum):
    """Where the cue is in its sentence."""

    ANYWHERE = "anywhere"
    OPENING = "at the start, maybe after a marker"
    PAUSE = "after a comma, a dash or the like"


_OPENING = re.compile(r"[\"'“‘(]?(?:(?:and|but|well|yeah|yes|no|oh|now|okay|right)(?:, | )){0,3}\Z")
_PAUSE = re.compile(r",? ?(?:[;:,—–…-]|--|\.\.\.) ?(?:and |but )?\Z")


class Surroundings:
    """The text around a cue in lower case, and the nearest word on either side."""

    __slots__ = ("is_opening", "last", "left", "next", "right")

    def __init__(self, small: str, start: int, end: int) -> None:
        self.left, self.right = small[:start], small[end:]
        words = self.left[-24:].split()
        self.last = words[-1] if words and self.left[-1] == " " else ""
        words = self.right[:24].split(None, 2)
        if words[:1] == [","]:
            del words[0]
        self.next = words[0].rstrip(",.;:") if words else ""
        self.is_opening = start < 30 and _OPENING.match(self.left) is not None

    def pause(self) -> int | None:
        """How many characters the pause before the cue has, with its "and"; None if there is no pause."""
        pause = _PAUSE.search(self.left, max(0, len(self.left) - 9))
        return None if pause is None else len(self.left) - pause.start()


@dataclass(frozen=True)
class Rule:
    """When a rule fits: all of its conditions must hold.

    `last` and `next` list the words that may come directly before and after the cue; `before` is an expression
    that ends exactly where the cue begins, `after` an expression that begins where the cue ends.
    """

    cue: str
    position: Position = Position.ANYWHERE
    last: str = ""
    next: str = ""
    before: str = ""
    after: str = ""
    _last: frozenset[str] = field(init=False, repr=False, compare=False)
    _next: frozenset[str] = field(init=False, repr=False, compare=False)
    _before: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _after: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_last", frozenset(self.last.split()))
        object.__setattr__(self, "_next", frozenset(self.next.split()))
        object.__setattr__(self, "_before", re.compile(f"(?:{self.before})\\Z"))
        object.__setattr__(self, "_after", re.compile(self.after))

    @property
    def decides_by_next(self) -> bool:
        """Whether the next word is the only condition."""
        return (
            bool(self.next) and self.position is Position.ANYWHERE and not (self.last or self.before or self.after)
        )

    def fit(self, around: Surroundings) -> int | None:
        """How many characters before the cue belong to it (its comma, its "and"), or None."""
        if (self._last and around.last not in self._last) or (self._next and around.next not in self._next):
            return None
        if self.after and self._after.match(around.right) is None:
            return None
        if self.position is Position.OPENING:
            return len(around.left) if around.is_opening else None
        if self.position is Position.PAUSE:
            return around.pause()
        return self._taken_before(around.left)

    def _taken_before(self, left: str) -> int | None:
        if not self.before:
            return 0
        # Thirty characters hold any `before`; without the limit every rule scans all of a long sentence.
        match = self._before.search(left, max(0, len(left) - 30))
        return None if match is None else len(left) - match.start()


@dataclass(frozen=True)
class Trap(Rule):
    """A use of the cue that does not state a cause; the summary counts it under `reason`."""

    reason: str = ""


@dataclass(frozen=True)
class Pattern(Rule):
    """A use of the cue that states a cause.

    `order` says which side comes first in the text: the effect ("because") or the cause ("so").
    `wary` marks a cue that speakers also use just to continue: the effect, or both sides, must look causal.
    `first_phrase` and `second_phrase` allow that side to be a noun phrase rather than a clause.
    """

    name: str = ""
    order: Order = "so"
    shape: Shape = Shape.BETWEEN
    example: str = ""
    first_phrase: bool = False
    second_phrase: bool = False
    wary: Wariness = "none"
