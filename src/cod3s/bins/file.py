"""Write and read the bins file: an SQLite file with a row per bin and per inner node of the tree.

A row's signature is a string of 0 and 1. A row with fewer bits than the file's signatures is an inner node: all
sentences whose signature starts with its bits.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from cod3s.errors import BinsError
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import existing_file
from cod3s.io.sqlite_file import SqliteFile
from cod3s.records import Bin
from cod3s.signatures import from_text

_MAX_VALUES = 500  # signatures per query; old builds of SQLite take 999 values at most


@dataclass(frozen=True)
class BinsFacts:
    """How a bins file was made: a different encoder, code or seed means different bins."""

    encoder: str
    code: str
    bits: int
    seed: int
    sentences: int
    tree_depth: int  # inner nodes are kept for prefixes up to this many bits
    format: int = 1


class BinsFile(SqliteFile[BinsFacts]):
    """An open bins file."""

    what, remedy, error = "a bins file", "cod3s bins build", BinsError
    facts_type, tables = BinsFacts, ("bins",)
    schema = """
CREATE TABLE bins (
  signature TEXT PRIMARY KEY, count INTEGER NOT NULL, medoid TEXT NOT NULL, samples TEXT NOT NULL
) WITHOUT ROWID;
"""

    @cached_property
    def populated(self) -> int:
        """How many bins have sentences."""
        with self._readable():
            (number,) = self._database.execute(
                "SELECT count(*) FROM bins WHERE length(signature) = ?", (self.facts.bits,)
            ).fetchone()
        return int(number)

    def get(self, signature: str) -> Bin | None:
        """The bin or inner node with this signature; None if it has no sentence."""
        from_text(signature)
        if len(signature) > self.facts.bits:
            raise BinsError(
                f"{signature!r} has {len(signature)} bits, but the bins of {self.path} have {self.facts.bits}"
            )
        return next(self._select("WHERE signature = ?", signature), None)

    def find(self, signatures: Iterable[str]) -> dict[str, Bin]:
        """The populated bins and inner nodes among `signatures`, by signature."""
        wanted = list(dict.fromkeys(signatures))
        bins: dict[str, Bin] = {}
        for start in range(0, len(wanted), _MAX_VALUES):
            values = wanted[start : start + _MAX_VALUES]
            marks = ",".join("?" * len(values))
            bins.update((bin.signature, bin) for bin in self._select(f"WHERE signature IN ({marks})", *values))
        return bins

    def neighbors(self, signature: str) -> list[Bin]:
        """The populated bins whose signatures differ in a single bit, in order of that bit."""
        flipped = [
            signature[:position] + ("1" if bit == "0" else "0") + signature[position + 1 :]
            for position, bit in enumerate(signature)
        ]
        populated = self.find(flipped)
        return [populated[other] for other in flipped if other in populated]

    def tree(self, depth: int, root: str = "") -> Iterator[Bin]:
        """The nodes below `root` down to `depth` bits in all, each before its children, zeros first."""
        if root:
            from_text(root)
        if not len(root) <= depth <= self.facts.tree_depth:
            raise BinsError(
                f"{self.path} keeps the tree to depth {self.facts.tree_depth}, not {depth}",
                hint=f"choose a depth from {len(root)} to {self.facts.tree_depth}",
            )
        # Alphabetical order is tree order: a prefix comes before the signatures that start with it.
        yield from self._select(
            "WHERE length(signature) <= ? AND substr(signature, 1, ?) = ? ORDER BY signature",
            depth,
            len(root),
            root,
        )

    def bins(self) -> Iterator[Bin]:
        """All populated bins, in order of signature."""
        yield from self._select("WHERE length(signature) = ? ORDER BY signature", self.facts.bits)

    def largest(self, most: int) -> Iterator[Bin]:
        """Up to `most` populated bins, the largest first, equal ones in order of signature."""
        yield from self._select(
            "WHERE length(signature) = ? ORDER BY count DESC, signature LIMIT ?", self.facts.bits, most
        )

    def _select(self, where: str, *values: str | int) -> Iterator[Bin]:
        with self._readable():
            for signature, count, medoid, samples in self._database.execute(
                f"SELECT signature, count, medoid, samples FROM bins {where}", values
            ):
                row = {"signature": signature, "count": count, "medoid": medoid, "samples": json.loads(samples)}
                yield parse_record(Bin, row)


def write_bins(path: Path, facts: BinsFacts, rows: Iterable[Bin]) -> None:
    """Write the file, all or nothing."""
    with BinsFile.new(path, facts) as database:
        database.executemany(
            "INSERT INTO bins VALUES (?, ?, ?, ?)",
            ((row.signature, row.count, row.medoid, json.dumps(row.samples, ensure_ascii=False)) for row in rows),
        )


def open_bins(path: str | Path) -> BinsFile:
    """The bins file at `path`, checked and open for reading."""
    return BinsFile(existing_file(Path(path)))
