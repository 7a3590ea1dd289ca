"""Kills: kill -9 at a random moment, run the command again, and compare with the uninterrupted run byte by byte.

PYTHONPATH=benchmarks:tests python -m campaign.kills --cases 10 --seconds 600 --only prepare
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from campaign.commands import Command, difference, try_each, whole_run
from campaign.tally import Budget, Tally, parser, print_all


def kill_and_go_on(command: Command, folder: Path, budget: Budget) -> Tally:
    """Kill the command at a random moment of its run, run it again, and compare."""
    tally = Tally(f"kills: {command.name}")
    started = time.monotonic()
    (folder / "whole").mkdir()
    expected = whole_run(command, folder / "whole" / "out")
    length = time.monotonic() - started
    for number in budget.numbers():
        case = folder / str(number)
        case.mkdir()
        process = command.start(case / "out")
        moment = budget.draw(command.name, number).uniform(0.2, 1.1) * length
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        tally.count(f"killed after {moment:.1f} of {length:.1f} s", _go_on(command, case / "out", expected))
    return tally


def _go_on(command: Command, output: Path, expected: dict[str, str]) -> str:
    try:
        result = whole_run(command, output, *(command.again if output.exists() else ()))
    except RuntimeError as error:
        return str(error)
    return difference(result, expected)


def campaign(options: argparse.Namespace) -> Iterator[Tally]:
    return try_each(options, kill_and_go_on)


if __name__ == "__main__":
    sys.exit(print_all(campaign(parser(__doc__, cases=10, seconds=600).parse_args())))
