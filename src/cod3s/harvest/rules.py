"""Define what a rule for a cue is: where the cue is, what surrounds it, and what the rule decides.

The rules of a cue are tried from top to bottom, false cues first. The first rule that fits decides: a false cue
refuses the cue with a reason, a pattern says which side is the cause.
"""

import re
from dataclasses import dataclass
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
_PAUSE = r",? ?(?:[;:,—–…-]|--|\.\.\.) ?(?:and |but )?"


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


@dataclass
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

    def __post_init__(self) -> None:
        before = _PAUSE if self.position is Position.PAUSE else self.before
        self._last, self._next = frozenset(self.last.split()), frozenset(self.next.split())
        self._before = re.compile(f"(?:{before})\\Z") if before else None
        self._after = re.compile(self.after)

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
        if self._before is None:
            return 0
        # Thirty characters hold any `before`; without the limit every rule scans all of a long sentence.
        left = around.left
        match = self._before.search(left, max(0, len(left) - 30))
        return None if match is None else len(left) - match.start()


@dataclass
class FalseCue(Rule):
    """A use of the cue that does not state a cause; the summary counts it under `reason`."""

    reason: str = ""


@dataclass
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
