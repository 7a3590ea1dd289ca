"""The funnel: how many pairs each step removed. Counts in, a table that adds up out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FunnelStep:
    """One step: the rows that came in, those that went on, and why the others did not."""

    name: str
    rows_in: int
    rows_out: int
    reason: str

    @property
    def removed(self) -> int:
        return self.rows_in - self.rows_out


def make_funnel(
    rows: int, reasons: Sequence[tuple[str, str]], removed: Mapping[str, int], kept: int
) -> list[FunnelStep]:
    """The steps in the order of `reasons` (name, reason), from `rows` down to `kept`.

    A count that does not add up is a bug of ours, and is found here rather than by a reader of the table.
    """
    unknown = set(removed) - {name for name, _ in reasons}
    assert not unknown, f"rows were removed by {unknown}, which the funnel does not show"
    steps = []
    for name, reason in reasons:
        left = rows - removed.get(name, 0)
        steps.append(FunnelStep(name, rows, left, reason))
        rows = left
    assert rows == kept, f"the funnel ends with {rows} rows, but {kept} were kept"
    return steps
