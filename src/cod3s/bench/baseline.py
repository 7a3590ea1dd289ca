"""Compare the ratios of a benchmark with those of an earlier run, and check whether the machine is busy.

Ratios to a peer in the same run hardly depend on the machine, so one committed baseline works everywhere.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.disk import read_json
from cod3s.options import changed_values

_LABELS = {"encoder": "ratio", "stage": "ratio", "name": "share"}
"""The fields of each benchmark's record that name a row and its ratio; `processor_` ratios are of CPU time."""
_OF_THE_RUN = ("load", "clock", "limit_gflops")
"""Settings that describe the state of the machine, not what was measured."""


@dataclass(frozen=True)
class Machine:
    """The load before the benchmark, and whether it leaves too few cores for the benchmark's threads."""

    load: float
    cores: int
    threads: int

    @property
    def busy(self) -> bool:
        """Whether there are clearly more runnable threads than cores."""
        return self.load + self.threads > self.cores + 1

    @property
    def clock(self) -> str:
        """Which clock to trust: on a busy machine, processor time."""
        return "processor" if self.busy else "wall"

    @property
    def remark(self) -> str:
        return (
            f"the machine is busy (load {self.load:.1f}, {self.cores} cores, {self.threads} threads to measure): "
            "seconds mean little, so ratios are of processor time"
        )


def look_at_machine(threads: int | None) -> Machine:
    """The machine as it is now; without `threads` the benchmark uses all cores."""
    cores = os.cpu_count() or 1
    return Machine(round(os.getloadavg()[0], 2), cores, threads or cores)


@dataclass(frozen=True)
class Change:
    """One ratio before and now."""

    name: str
    before: float
    now: float

    @property
    def fall(self) -> float:
        """The share by which it fell; negative if it rose."""
        return 1 - self.now / self.before


def compare_with_baseline(path: Path, record: Mapping[str, Any]) -> tuple[list[Change], str]:
    """Each ratio that both runs have, and the clock that measured it.

    Processor time is compared unless the machine was idle in both runs. Different settings are an error.
    """
    baseline = read_json(path)
    if not isinstance(baseline, dict) or not isinstance(baseline.get("settings"), dict):
        raise FileFormatError(
            f"{path} is not the record of a benchmark", hint="write it with `cod3s bench … --json`"
        )
    _require_equal_settings(path, baseline["settings"], record["settings"])
    clocks = {run["settings"].get("clock", "processor") for run in (baseline, record)}
    clock = "wall" if clocks == {"wall"} else "processor"
    before, now = _ratios(baseline, clock), _ratios(record, clock)
    changes = [Change(name, before[name], now[name]) for name in before if name in now]
    if not changes:
        raise Cod3sError(f"{path} has no row in common with this run", hint="give the baseline of this command")
    return changes, clock


def _ratios(record: Mapping[str, Any], clock: str) -> dict[str, float]:
    prefix = "processor_" if clock == "processor" else ""
    ratios = {}
    for row in record.get("rows") or record.get("stages") or []:
        for label, figure in _LABELS.items():
            value = row.get(f"{prefix}{figure}") if label in row else None
            if isinstance(value, int | float) and value > 0:
                ratios[str(row[label])] = float(value)
    return ratios


def _require_equal_settings(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    compared = {name: now.get(name) for name in sorted({*before, *now}.difference(_OF_THE_RUN))}
    if differing := changed_values(before, compared):
        raise Cod3sError(
            f"{path} was measured with different settings: {'; '.join(differing)}",
            hint="run the benchmark with those settings, or write a new baseline with --json",
        )
