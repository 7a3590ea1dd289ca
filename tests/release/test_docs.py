"""The commands in README and docs are run, and print what the page says.

A fenced block marked `console` holds `$ command` lines (continued by `> `) and their output. Words after it:
`data` needs the shared evaluation files, `noisy` output is not compared, `long` is not run. Blocks marked `python`
are run too; a block marked `text` (or `text noisy`) right after one is its output. Links and anchors of every page
lead somewhere, and MkDocs builds the site without a warning.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import ROOT, SHARED_DATA

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = [*PAGES, *sorted(ROOT.glob("[B-Z]*.md")), ROOT / "examples" / "README.md"]
FENCE = re.compile(
    r"^```(console[ a-z]*|python)\n(.*?)^```$(?:\n\n```text( noisy)?\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
ANY_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
MENTION = re.compile(r"docs/[\w/-]+\.md")
STYLE = re.compile("\x1b\\[[0-9;]*m")
STYLE = re.compile(r"\x1b\[[0-9;]*m")
DECIMAL = re.compile(r"\d+\.\d+")


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Step:
    command: str
    wanted: list[str]
    marks: frozenset[str]


def steps(page: Path) -> list[Step]:
    found: list[Step] = []
    for kind, body, noisy, output in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            marks = frozenset({"noisy"} if noisy or not output else ())
            command = f"{sys.executable} - <<'PYTHON'\n{body}PYTHON"
            found.append(Step(command, visible(output.splitlines()), marks))
            continue
        marks = frozenset(kind.split()[1:])
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            last = max((n for n, line in enumerate(lines) if line.startswith("> ")), default=0)
            command = "\n".join(line.removeprefix("> ") for line in lines[: last + 1])
            found.append(Step(command, visible(lines[last + 1 :]), marks))
    return found


def visible(lines: list[str]) -> list[str]:
    """The lines with text in them, without styles."""
    plain = (STYLE.sub("", line).rstrip() for line in lines)
    return [line for line in plain if line]


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


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_commands_of_a_page_print_what_it_says(page: Path, workplace: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{workplace / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "TTY_COMPATIBLE": "1",  # the pages show what a terminal shows
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


def prose(page: Path) -> str:
    return ANY_FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, by the rule that GitHub and MkDocs share for plain headings."""
    headings = [re.sub(r"[^\w\s-]", "", heading.lower()) for heading in HEADING.findall(prose(page))]
    return {re.sub(r"\s+", "-", heading.strip()) for heading in headings}


@pytest.mark.smoke
@pytest.mark.parametrize("page", sorted(set(LINKED)), ids=name)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    dead = []
    for link in LINK.findall(prose(page)):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        goal = (page.parent / path).resolve() if path else page
        if not goal.exists() or (anchor and anchor not in anchors(goal)):
            dead.append(link)
    assert not dead


@pytest.mark.smoke
def test_headings_of_a_page_have_different_anchors() -> None:
    doubled = {
        name(page): heading
        for page in PAGES
        for heading, count in Counter(HEADING.findall(prose(page))).items()
        if count > 1
    }
    assert not doubled


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=name)
def test_the_index_leads_to_every_guide(page: Path) -> None:
    assert page.name == "index.md" or f"({page.name})" in prose(ROOT / "docs" / "index.md")


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "measured").glob("*.md")), ids=name)
def test_the_index_leads_to_every_measurement(page: Path) -> None:
    assert f"(measured/{page.name})" in prose(ROOT / "docs" / "index.md")


@pytest.mark.smoke
def test_code_refers_only_to_pages_that_exist() -> None:
    sources = [
        path for room in ("src", "tests", "benchmarks", "recipes") for path in (ROOT / room).rglob("*.[mp][dy]")
    ]
    mentions = {mention for path in sources for mention in MENTION.findall(path.read_text(encoding="utf-8"))}
    assert not {mention for mention in mentions if not (ROOT / mention).is_file()}


def test_the_readme_is_short_and_names_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(prose(ROOT / "README.md").split()) <= 1000
    assert "make demo" in text
    assert "make test" in text


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Strict: dead links, dead anchors and pages missing from the navigation are errors."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    for part in ("docs", "mkdocs.yml"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, tmp_path / part)
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"],
        cwd=tmp_path,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "build" / "site").rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))  # every page, and 404.html
    loaded = re.compile(
        r"<(?:script|img|iframe)[^>]* src=\"?https?:|<link rel=\"?(?:stylesheet|preconnect)\"? href=\"?https?:"
    )
    assert not [page.name for page in pages if loaded.search(page.read_text(encoding="utf-8"))]
