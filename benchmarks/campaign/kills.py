"""Kills: kill -9 at random moments, run the command again, and compare with the uninterrupted run byte by byte.

    PYTHONPATH=benchmarks:tests python -m campaign.kills --cases 50 --seconds 600 --only prepare

The run that goes on is killed, too, up to five times in a row. `--cases` counts the kills.
"""

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

from campaign.commands import Command, difference, practised, try_each, whole_run
from campaign.tally import Budget, Tally, parser, print_all

_IN_A_ROW = 5


def kill_and_go_on(command: Command, folder: Path, budget: Budget) -> Tally:
    """Kill the command at random moments, go on each time, and compare what it ends with."""
    tally = Tally(f"kills: {command.name}")
    expected, length = practised(command, folder)
    for number in budget.numbers():
        if tally.tried >= budget.cases:
            break
        case = folder / str(number)
        case.mkdir()
        draw = budget.draw(command.name, number)
        kills, finding = _kill_in_a_row(command, case / "out", length, draw)
        finding = finding or _go_on(command, case / "out", expected)
        tally.tried += kills
        if finding:
            tally.findings.append(f"{tally.name}, case {number}, {kills} kills: {finding}")
        shutil.rmtree(case)
    return tally


def _kill_in_a_row(command: Command, output: Path, length: float, draw: Random) -> tuple[int, str]:
    """The number of kills until a run ended before its kill, at most five, and what that run said if it failed."""
    for kills in range(_IN_A_ROW):
        process = command.start(output, *_more(command, output))
        if not process.kill_after(draw.uniform(0, 0.95) * length, draw.random()):
            return kills, "" if process.returncode == 0 else process.complaint().strip()[-300:]
    return _IN_A_ROW, ""


def _go_on(command: Command, output: Path, expected: dict[str, str]) -> str:
    try:
        result = whole_run(command, output, *_more(command, output))
    except RuntimeError as error:
        return str(error)
    return difference(result, expected)


def _more(command: Command, output: Path) -> tuple[str, ...]:
    return command.again if output.exists() else ()


def campaign(options: argparse.Namespace) -> Iterator[Tally]:
    return try_each(options, kill_and_go_on)


if __name__ == "__main__":
    sys.exit(print_all(campaign(parser(__doc__, cases=10, seconds=600).parse_args())))
