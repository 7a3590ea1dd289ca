"""A benchmark is compared with an earlier run: falls are refused, noise and other settings are told apart."""

import json
from pathlib import Path
from typing import Any

import pytest

from cod3s.bench.baseline import Change, Machine, compare_with_baseline
from cod3s.errors import Cod3sError, FileFormatError
from conftest import ROOT, Run

ENCODE = ("bench", "encode", "-e", "static", "-n", "50", "--rounds", "1")


def record(clock: str = "wall", bits: int = 16, **rows: tuple[float, float]) -> dict[str, Any]:
    """A record of stages with their ratios on the wall and of the processor."""
    stages = [{"stage": name, "ratio": wall, "processor_ratio": busy} for name, (wall, busy) in rows.items()]
    return {"settings": {"bits": bits, "clock": clock, "load": 0.1}, "stages": stages}


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(record(sentences=(2.0, 1.6), rerank=(1.2, 1.1))))
    return path


def test_idle_runs_are_compared_by_the_wall_and_others_by_the_processor(baseline: Path) -> None:
    now = {"sentences": (1.0, 1.7), "rerank": (1.2, 1.1), "new stage": (9.0, 9.0)}
    changes, clock = compare_with_baseline(baseline, record(**now))
    assert (changes, clock) == ([Change("sentences", 2.0, 1.0), Change("rerank", 1.2, 1.2)], "wall")
    assert changes[0].fall == 0.5
    changes, clock = compare_with_baseline(baseline, record("processor", **now))
    assert (changes[0], clock) == (Change("sentences", 1.6, 1.7), "processor")


@pytest.mark.parametrize(
    ("content", "now", "error", "match"),
    [
        (None, record(bits=8, a=(1, 1)), Cod3sError, "bits was 16, is now 8"),
        (None, record(other=(1, 1)), Cod3sError, "no row in common"),
        ("[]", record(a=(1, 1)), FileFormatError, "not the record of a benchmark"),
        ("{", record(a=(1, 1)), FileFormatError, "valid JSON"),
    ],
    ids=["other settings", "other rows", "not a record", "not JSON"],
)
def test_a_baseline_that_does_not_fit_is_an_error(
    baseline: Path, content: str | None, now: dict[str, Any], error: type[Cod3sError], match: str
) -> None:
    if content is not None:
        baseline.write_text(content)
    with pytest.raises(error, match=match):
        compare_with_baseline(baseline, now)


@pytest.mark.parametrize(
    ("load", "threads", "busy"), [(0.3, 2, False), (1.5, 2, True), (1.5, 1, False), (2.4, 1, True)]
)
def test_a_machine_is_busy_if_threads_outnumber_its_cores_by_more_than_one(
    load: float, threads: int, busy: bool
) -> None:
    machine = Machine(load, cores=2, threads=threads)
    assert machine.busy == busy
    assert machine.clock == ("processor" if busy else "wall")


def test_the_command_passes_or_fails_by_the_baseline(cod3s: Run, tmp_path: Path) -> None:
    first = cod3s(*ENCODE, "--json")
    assert first.returncode == 0, first.stderr
    (tmp_path / "before.json").write_text(first.stdout)
    same = cod3s(*ENCODE, "--against", "before.json")  # an encoder is always as fast as itself
    assert same.returncode == 0, same.stderr
    assert "against before.json" in same.stdout
    better = json.loads(first.stdout)
    better["rows"][0] |= {"ratio": 2.0, "processor_ratio": 2.0}
    (tmp_path / "before.json").write_text(json.dumps(better))
    fallen = cod3s(*ENCODE, "--against", "before.json", "--json")
    assert fallen.returncode == 1
    assert "1 of 1 ratios fell by more than 20%" in fallen.stderr
    assert json.loads(fallen.stdout)["against"]["changes"][0]["now"] == 1.0


@pytest.mark.parametrize("name", ["decode", "encode"])
def test_the_committed_baselines_can_be_compared_with(name: str) -> None:
    path = ROOT / "benchmarks" / "baselines" / f"{name}.json"
    changes, _ = compare_with_baseline(path, json.loads(path.read_text()))
    assert len(changes) >= 3
    assert all(change.fall == 0 for change in changes)
