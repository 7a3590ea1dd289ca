"""The commands in README and docs are run, and print what the page says.

A fenced block marked `console` holds `$ command` lines (continued by `> `) and their output. Words after it:
`data` needs the shared evaluation files, `noisy` output is not compared, `long` is not run.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import ROOT, SHARED_DATA

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(console[ a-z]*|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DECIMAL = re.compile(r"\d+\.\d+")


@dataclass(frozen=True)
class Step:
    command: str
    wanted: list[str]
    marks: frozenset[str]


def steps(page: Path) -> list[Step]:
    found: list[Step] = []
    for kind, body in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            found.append(Step(f"{sys.executable} - <<'PYTHON'\n{body}PYTHON", [], frozenset({"noisy"})))
            continue
        marks = frozenset(kind.split()[1:])
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            last = max((n for n, line in enumerate(lines) if line.startswith("> ")), default=0)
            command = "\n".join(line.removeprefix("> ") for line in lines[: last + 1])
            found.append(Step(command, visible(lines[last + 1 :]), marks))
    return found


def visible(lines: list[str]) -> list[str]:
    return [line.rstrip() for line in lines if line.strip()]


def matches(found: list[str], wanted: list[str]) -> bool:
    """Equal line by line; a line of … stands for any lines."""
    if not wanted:
        return not found
    if wanted[0] == "…":
        return any(matches(found[skip:], wanted[1:]) for skip in range(len(found) + 1))
    return bool(found) and same_line(found[0], wanted[0]) and matches(found[1:], wanted[1:])


def same_line(found: str, wanted: str) -> bool:
    """Equal but for the last digits of decimal fractions, in which processors differ."""
    figures = [[float(figure) for figure in DECIMAL.findall(line)] for line in (found, wanted)]
    return DECIMAL.sub("#", found) == DECIMAL.sub("#", wanted) and figures[0] == pytest.approx(
        figures[1], abs=0.002
    )


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder with `cod3s` on the path and, where they are to be had, the evaluation files."""
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin" / "cod3s"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m cod3s "$@"\n')
    shim.chmod(0o755)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    if SHARED_DATA.is_dir():
        for path in SHARED_DATA.glob("*/*.*"):
            (tmp_path / path.name).symlink_to(path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_print_what_it_says(page: Path, workplace: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{workplace / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
    }
    for step in steps(page):
        if "long" in step.marks or ("data" in step.marks and not SHARED_DATA.is_dir()):
            continue
        done = subprocess.run(
            ["bash", "-ec", step.command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=workplace,
            env=environment,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, f"{step.command}\n{done.stdout}"
        if "noisy" not in step.marks:
            assert matches(visible(done.stdout.splitlines()), step.wanted), f"{step.command}\n{done.stdout}"


def test_the_readme_has_commands_that_are_run() -> None:
    assert len([step for step in steps(PAGES[0]) if not step.marks]) >= 3
