"""Read tables of answers that were judged: source, relation, target and plausible (yes, partly or no)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cod3s.errors import FileFormatError
from cod3s.io.tables import open_table

VERDICTS = ("yes", "partly", "no")


@dataclass(frozen=True)
class Verdict:
    """An answer, and whether a reader found it plausible."""

    relation: str
    source: str
    target: str
    plausible: str  # one of VERDICTS


def read_verdicts(path: Path, split: str, *, unsplit: str) -> Iterator[Verdict]:
    """The verdicts of a split; the rows of a table without a column `split` belong to the split `unsplit`."""
    with open_table(path) as table:
        relation, source, target, plausible = map(table.text, ("relation", "source", "target", "plausible"))
        split_of = table.text("split") if "split" in table.header else lambda _: unsplit
        for row in table:
            if split_of(row) != split:
                continue
            if (verdict := plausible(row)) not in VERDICTS:
                raise FileFormatError(
                    f"{table.name}, line {row.line}: {verdict!r} is not a verdict",
                    hint=f"write {' or '.join(VERDICTS)}",
                )
            yield Verdict(relation(row), source(row), target(row), verdict)
