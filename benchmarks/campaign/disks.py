"""Writers of files on a disk that fails: the error is clear, and the old result stays.

PYTHONPATH=benchmarks:tests python -m campaign.disks
"""

import argparse
import errno
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from unittest.mock import patch

from campaign.commands import digest
from campaign.tally import Tally, parser, print_all
from cod3s.bins.file import BinsFacts, write_bins
from cod3s.errors import Cod3sError
from cod3s.io.disk import replaced_folder, write_json, write_json_lines, write_text
from cod3s.io.tables import replaced_table
from cod3s.records import Bin

_SMALL_DISK_BYTES = 1 << 19


@dataclass(frozen=True)
class DiskFault:
    """A disk that fails while the block runs."""

    name: str
    failing: Callable[[Path], AbstractContextManager[None]]

    def try_writers(self, folder: Path) -> list[str]:
        """What each writer did wrong: it must fail with a clear error, and leave the old result, nothing else."""
        findings = []
        for name, write in WRITERS.items():
            output = folder / name
            write(output, 1)
            before, listing = digest(output), sorted(folder.iterdir())
            try:
                with self.failing(folder):
                    write(output, 100_000)
                findings.append(f"{name}: it was not told")
            except (OSError, Cod3sError):
                pass
            if digest(output) != before:
                findings.append(f"{name}: the old result is gone")
            if sorted(folder.iterdir()) != listing:
                findings.append(f"{name}: something was left behind")
        return findings


def _write_table(path: Path, rows: int) -> None:
    with replaced_table(path, ("cause", "effect")) as write:
        write(
            [("the pipe burst", blake2b(b"%d" % row).hexdigest()) for row in range(rows)]
        )  # cannot be compressed


def _write_folder(path: Path, rows: int) -> None:
    with replaced_folder(path, "mark") as partial:
        (partial / "mark").write_text("x" * 50 * rows)


def _write_bins(path: Path, rows: int) -> None:
    bins = (Bin(f"{row:032b}", 1, f"sentence {row}", ()) for row in range(rows))
    write_bins(path, BinsFacts("static", "random", 32, 1, rows, 0), bins)


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "text.txt": lambda path, rows: write_text(path, "a line of text\n" * rows),
    "value.json": lambda path, rows: write_json(path, ["value"] * rows),
    "lines.jsonl": lambda path, rows: write_json_lines(path, ({"row": row} for row in range(rows))),
    "pairs.tsv": _write_table,
    "pairs.parquet": _write_table,
    "folder": _write_folder,
    "bins.sqlite": _write_bins,
}


@contextmanager
def _failing_fsync(_folder: Path) -> Iterator[None]:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with patch.object(os, "fsync", fail):
        yield


@contextmanager
def _full(_folder: Path) -> Iterator[None]:
    """Files may not grow beyond half a megabyte: what a write sees of a full disk, without one."""
    import resource
    import signal

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_SMALL_DISK_BYTES, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)


DISK_FAULTS = (DiskFault("fsync fails", _failing_fsync), DiskFault("files cannot grow", _full))


def campaign(_options: argparse.Namespace) -> Iterator[Tally]:
    for fault in DISK_FAULTS:
        tally = Tally(f"disk: {fault.name}", tried=len(WRITERS))
        with tempfile.TemporaryDirectory() as folder:
            tally.findings = fault.try_writers(Path(folder))
        yield tally


if __name__ == "__main__":
    sys.exit(print_all(campaign(parser(__doc__, cases=1, seconds=60).parse_args())))
