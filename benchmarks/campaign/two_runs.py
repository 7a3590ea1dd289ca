"""Two runs into one folder at once: one gets a clear error or finds the work done, and nothing is mixed.

PYTHONPATH=benchmarks:tests python -m campaign.two_runs --cases 5 --seconds 300
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from campaign.commands import Command, difference, digest, try_each, whole_run
from campaign.tally import Budget, Tally, parser, print_all

_REFUSED = ("another run is writing into", "already exists", "also an input")


def run_twice_at_once(command: Command, folder: Path, budget: Budget) -> Tally:
    tally = Tally(f"two runs: {command.name}")
    (folder / "whole").mkdir()
    expected = whole_run(command, folder / "whole" / "out.jsonl")
    for number in budget.numbers():
        case = folder / str(number)
        case.mkdir()
        tally.count(f"case {number}", _race(command, case / "out.jsonl", expected))
    return tally


def _race(command: Command, output: Path, expected: dict[str, str]) -> str:
    runs = [command.start(output), command.start(output)]
    complaints = [run.communicate()[1] for run in runs]
    failed = [complaint for run, complaint in zip(runs, complaints, strict=True) if run.returncode]
    unclear = [complaint for complaint in failed if not any(reason in complaint for reason in _REFUSED)]
    if unclear:
        return f"an unclear error: {unclear[0].strip()[-200:]}"
    if len(failed) == len(runs):
        return "neither run finished"
    if leftovers := [path.name for path in output.parent.iterdir() if path != output]:
        return f"left behind: {', '.join(leftovers)}"
    return difference(digest(output, command), expected)


def campaign(options: argparse.Namespace) -> Iterator[Tally]:
    return try_each(options, run_twice_at_once)


if __name__ == "__main__":
    sys.exit(print_all(campaign(parser(__doc__, cases=5, seconds=300).parse_args())))
