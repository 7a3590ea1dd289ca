"""Who rates what: each rater has their own order, with checks spread through it and the least rated items first.

The store calls it inside the transaction that saves the choice.
"""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cod3s.study.plan.folder import CHECK, Item, Study


@dataclass(frozen=True)
class Assignment:
    """The rule of a study. `items` and `checks` are ids."""

    seed: int
    raters_per_item: int
    per_rater: int
    items: tuple[str, ...]
    checks: tuple[str, ...]

    @property
    def total(self) -> int:
        """How many statements a rater gets, as long as there are enough to rate."""
        return min(self.per_rater, len(self.items)) + len(self.checks)

    def next(self, rater: str, assigned: Sequence[str], load: Mapping[str, int]) -> str | None:
        """The next item of `rater`, or None at the end.

        `assigned` are the rater's items so far, `load` is the number of raters per item. No item gets extra raters
        until every item has enough; until then, a rater who has only such items left is done.
        """
        position = len(assigned) + 1
        if position > self.total:
            return None
        if position in self.check_positions(rater):
            seen = sum(item in self.checks for item in assigned)
            return sorted(self.checks, key=lambda check: self._draw(rater, check))[seen]
        lacking = {item for item in self.items if load.get(item, 0) < self.raters_per_item}
        free = (lacking or set(self.items)).difference(assigned)
        return min(free, key=lambda item: (load.get(item, 0), self._draw(rater, item)), default=None)

    def check_positions(self, rater: str) -> set[int]:
        """The positions of the checks for `rater`, from 1: one at random in each of as many equal stretches."""
        generator = random.Random(f"{self.seed} {rater} places")
        number = len(self.checks)
        bounds = [round(stretch * self.total / number) for stretch in range(number + 1)] if number else []
        return {generator.randrange(low, high) + 1 for low, high in pairwise(bounds)}

    def _draw(self, rater: str, item: str) -> bytes:
        return hashlib.sha256(f"{self.seed} {rater} {item}".encode()).digest()


def assignment_of(study: Study, items: Sequence[Item]) -> Assignment:
    """The rule of `study` for its items."""
    return Assignment(
        seed=study.seed,
        raters_per_item=study.raters_per_item,
        per_rater=study.per_rater,
        items=tuple(item.id for item in items if item.kind != CHECK),
        checks=tuple(item.id for item in items if item.kind == CHECK),
    )
