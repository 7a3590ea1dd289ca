"""The speed scripts compare with an earlier run: falls are refused, and so are other settings."""

import json
import os
import subprocess
import sys
from pathlib import Path

from conftest import ROOT


def encoding_speed(*options: str | Path) -> subprocess.CompletedProcess[str]:
    script = ROOT / "benchmarks" / "encoding_speed.py"
    return subprocess.run(
        [sys.executable, script, "-e", "static", "--rounds", "1", *options],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=300,
        check=False,
    )


def test_a_script_passes_or_fails_by_its_baseline(tmp_path: Path) -> None:
    first = encoding_speed("-n", "50", "--json")
    assert first.returncode == 0, first.stderr
    baseline = tmp_path / "baseline.json"
    baseline.write_text(first.stdout)
    same = encoding_speed("-n", "50", "--against", baseline)  # an encoder is always as fast as itself
    assert same.returncode == 0, same.stderr
    assert "1.00 before, 1.00 now" in same.stdout
    other = encoding_speed("-n", "60", "--against", baseline)
    assert other.returncode == 1
    assert "sentences was 50, is now 60" in other.stderr
    better = json.loads(first.stdout)
    better["rows"][0] |= {"ratio": 2.0, "processor_ratio": 2.0}
    baseline.write_text(json.dumps(better))
    fallen = encoding_speed("-n", "50", "--against", baseline)
    assert fallen.returncode == 1
    assert "fell by more than 20%" in fallen.stderr


def test_the_committed_baselines_have_what_the_scripts_compare() -> None:
    for path in (ROOT / "benchmarks" / "baselines").glob("*.json"):
        record = json.loads(path.read_text())
        assert record["settings"]["clock"] in ("wall", "processor"), path
        assert len(record["rows"]) >= 3, path
        assert all({"name", "ratio", "processor_ratio"} <= row.keys() for row in record["rows"]), path
