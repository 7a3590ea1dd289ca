"""What a campaign tried, what survived, and what was lost; the options that every campaign takes."""

import argparse
import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

HEADER = "| campaign | tried | survived | lost |\n|---|---|---|---|"
_SHOWN = 5  # findings that are printed under a row


@dataclass
class Tally:
    """The figures of one campaign or of one part of it; a finding describes one case that was lost."""

    name: str
    tried: int = 0
    findings: list[str] = field(default_factory=list)
    remark: str = ""  # why nothing could be tried

    def count(self, case: str, finding: str) -> None:
        """One more case; `finding` says what was lost, or nothing."""
        self.tried += 1
        if finding:
            self.findings.append(f"{self.name}, {case}: {finding}")

    def row(self) -> str:
        """A row of the table under HEADER."""
        name = f"{self.name} ({self.remark})" if self.remark else self.name
        lost = len(self.findings)
        return f"| {name} | {self.tried:,} | {self.tried - lost:,} | {lost:,} |"


@dataclass(frozen=True)
class Budget:
    """How much a campaign may do: at most so many cases, in at most so many seconds, drawn from a seed."""

    cases: int
    seconds: float
    seed: int

    def numbers(self) -> Iterator[int]:
        """Case numbers until the cases or the seconds run out."""
        end = time.monotonic() + self.seconds
        for number in range(self.cases):
            if time.monotonic() > end:
                return
            yield number

    def draw(self, *names: object) -> random.Random:
        """A generator of its own for each case, so that one case can be tried again alone."""
        return random.Random(" ".join(map(str, (self.seed, *names))))


def parser(description: str | None, *, cases: int, seconds: float) -> argparse.ArgumentParser:
    """The options of a campaign, with its own defaults."""
    options = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    options.add_argument("--cases", type=int, default=cases, help="cases per part of the campaign")
    options.add_argument("--seconds", type=float, default=seconds, help="at most so long per part")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", default="", help="parts whose name has this in it")
    return options


def budget_of(options: argparse.Namespace) -> Budget:
    return Budget(options.cases, options.seconds, options.seed)


def print_all(tallies: Iterable[Tally], header: bool = True) -> int:
    """Print a row for each part as soon as it is over, and some findings; 1 if anything was lost, else 0."""
    lost = 0
    if header:
        print(HEADER, flush=True)
    for tally in tallies:
        print(tally.row(), flush=True)
        for finding in tally.findings[:_SHOWN]:
            print(f"<!-- {finding} -->", flush=True)
        lost += len(tally.findings)
    return int(lost > 0)
