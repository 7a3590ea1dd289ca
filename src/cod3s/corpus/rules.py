"""What a rule for a cue looks like: where it stands, what surrounds it, and what it decides. Holds no rule itself.

Every occurrence of a cue meets the rules of its cue from top to bottom, traps first. The first rule that fits
decides: a trap refuses with its reason, a pattern says which side is the cause.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

Order = Literal["because", "so"]
Wariness = Literal["none", "effect", "both"]


class Shape(Enum):
    """Where the two sides stand around the cue."""

    BETWEEN = "first CUE second"
    OPENING = "CUE first, second"
    NEXT = "First. CUE second"


class Surroundings:
    """What stands around one cue, in small letters: all of it, and the nearest word on either side."""

    __slots__ = ("last", "left", "next", "right")

    def __init__(self, small: str, start: int, end: int) -> None:
        self.left, self.right = small[:start], small[end:]
        words = self.left[-24:].split()
        self.last = words[-1] if words and self.left[-1] == " " else ""
        words = self.right[:24].split(None, 2)
        self.next = words[words[0] == ","].rstrip(",.;:") if len(words) > 1 else ""


@dataclass(frozen=True)
class Rule:
    """When a rule fits: every condition that is given must hold.

    `last` and `next` list the words that may stand directly before and after the cue; `before` is an expression
    that ends exactly where the cue begins, `after` one that begins where the cue ends.
    """

    cue: str
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

    def fit(self, around: Surroundings) -> int | None:
        """How many characters before the cue belong to it (its comma, its "and"); None if the rule does not fit."""
        if (self._last and around.last not in self._last) or (self._next and around.next not in self._next):
            return None
        if self.after and self._after.match(around.right) is None:
            return None
        if not self.before:
            return 0
        # Thirty characters hold any `before`; without the limit every rule scans all of a long sentence.
        before = self._before.search(around.left, max(0, len(around.left) - 30))
        return None if before is None else len(around.left) - before.start()


@dataclass(frozen=True)
class Trap(Rule):
    """A use of the cue that states no cause: `reason` is what the summary counts it under."""

    reason: str = ""


@dataclass(frozen=True)
class Pattern(Rule):
    """A use of the cue that states a cause.

    `order` says which side comes first in the text: the effect ("because") or the cause ("so").
    `wary` marks a cue that speakers also use to go on: the effect, or both sides, must look their part.
    `first_phrase` and `second_phrase` allow that side to be a noun phrase rather than a clause.
    """

    name: str = ""
    order: Order = "so"
    shape: Shape = Shape.BETWEEN
    example: str = ""
    first_phrase: bool = False
    second_phrase: bool = False
    wary: Wariness = "none"
