"""Bytes: every reader on damaged files. It must work or raise a Cod3sError, within 10 processor seconds and 1 GiB.

PYTHONPATH=benchmarks:tests python -m campaign.damaged_files --cases 10000 --seconds 60 --only pairs
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from campaign.damage import damage
from campaign.guarded import Guarded, Try, refused_or_done
from campaign.material import bundle_and_corpus
from campaign.readers import Reader, make_readers
from campaign.tally import Budget, Tally, budget_of, parser, print_all

_TOGETHER = 100  # cases between two looks at the clock
_PER_PROCESS = 1000  # cases: pyarrow 26 does not free 62 KB of each damaged .gz file that it reads
_MEMORY_DISK = Path("/dev/shm")  # a disk may take milliseconds to replace a file, most readers take less than one


def attack(reader: Reader, others: Sequence[bytes], budget: Budget) -> Tally:
    """Read damaged files until the budget is spent; `others` are valid files to splice them with."""
    tally = Tally(f"bytes: {reader.name}")
    numbers = budget.numbers()
    with tempfile.TemporaryDirectory(dir=_MEMORY_DISK if _MEMORY_DISK.is_dir() else None) as folder:
        while several := list(islice(numbers, _TOGETHER)):
            with Guarded(lambda: _reading(reader, Path(folder), others, budget)) as read:
                while several:
                    for number, finding in read.try_all(several):
                        tally.count(f"case {number}", finding)
                    several = list(islice(numbers, _TOGETHER)) if tally.tried % _PER_PROCESS else []
    return tally


def _reading(reader: Reader, folder: Path, others: Sequence[bytes], budget: Budget) -> Try:
    """Write the valid files, and give the function that reads them with one of them damaged."""
    for name, content in reader.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    reader.read(folder)

    def attempt(number: int) -> str:
        draw = budget.draw(reader.name, number)
        name = draw.choice(sorted(reader.targets))
        (folder / name).write_bytes(damage(reader.files[name], draw, others))
        try:
            finding = refused_or_done(lambda: reader.read(folder))
        finally:
            (folder / name).write_bytes(reader.files[name])
        return finding and f"{name}: {finding}"

    return attempt


def campaign(options: argparse.Namespace) -> Iterator[Tally]:
    bundle, corpus = bundle_and_corpus()
    with tempfile.TemporaryDirectory() as scratch:
        readers = make_readers(bundle, corpus, Path(scratch))
        others = [content for reader in readers for content in reader.files.values() if content]
        for reader in readers:
            if options.only in reader.name:
                yield attack(reader, others, budget_of(options))


if __name__ == "__main__":
    sys.exit(print_all(campaign(parser(__doc__, cases=10_000, seconds=60).parse_args())))
