"""The two packages, built and installed into fresh environments: light, complete, clear about what is missing."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT, run_module

pytestmark = pytest.mark.smoke
KEPT_OUT = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "*.egg-info", "__pycache__", ".*_cache")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel of both packages, built as for a release."""
    folder = tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT, folder / "checkout", ignore=KEPT_OUT)
    for project in (folder / "checkout", folder / "checkout" / "bundle"):
        run_module(["build", "--outdir", folder, project])
    return folder


@pytest.fixture(scope="module")
def base(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a new environment that holds the wheel of cod3s, what it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("base")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install(folder / "bin", wheel_of("cod3s", distributions))
    return folder / "bin"


def wheel_of(name: str, folder: Path) -> Path:
    (wheel,) = folder.glob(f"{name}-*.whl")
    return wheel


def install(binaries: Path, *arguments: str | Path) -> None:
    made = subprocess.run(
        [binaries / "pip", "install", "--quiet", *arguments], capture_output=True, text=True, check=False
    )
    if made.returncode and "No matching distribution" in made.stderr + made.stdout:
        pytest.skip("no package index can be reached from here")
    assert made.returncode == 0, made.stderr


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["COD3S_CACHE"] = str(cwd / "cache")  # an earlier conversion would serve without the extra
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=environment)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_base_install_is_small_and_has_no_engine(base: Path, tmp_path: Path) -> None:
    listed = json.loads(run(base / "pip", "list", "--format", "json", cwd=tmp_path).stdout)
    names = {package["name"].lower() for package in listed}
    assert "cod3s" in names
    assert not names & {"torch", "transformers", "ctranslate2", "sentencepiece", "cod3s-bundle"}
    packages = next((base.parent / "lib").glob("python*/site-packages"))
    assert size(packages) - size(packages / "pip") - size(packages / "setuptools") < 185e6


def test_importing_is_light(base: Path, tmp_path: Path) -> None:
    """The best of five, because the first run also compiles the byte code and the machine is noisy."""
    for statement in ("import cod3s", "import cod3s.cli.main"):
        script = f"import sys, time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t); "
        script += (
            "print(*(name for name in ('torch', 'numpy', 'ctranslate2', 'wordllama') if name in sys.modules))"
        )
        runs = [run(base / "python", "-c", script, cwd=tmp_path).stdout.splitlines() for _ in range(5)]
        assert min(float(seconds) for seconds, _ in runs) < 0.5
        assert all(not heavy for _, heavy in runs), "heavy libraries belong where they are used"


def test_the_base_install_signs_and_selects(base: Path, tmp_path: Path) -> None:
    signed = run(base / "cod3s", "sign", "It rained.", "The sun shone.", "--json", cwd=tmp_path)
    assert len(json.loads(signed.stdout)["sentences"][0]["signature"]) == 16
    (tmp_path / "texts.txt").write_text("It rained all day.\nIt was raining the whole day.\nThe cat slept.\n")
    selected = run(base / "cod3s", "select", "texts.txt", "-k", "2", "--json", cwd=tmp_path)
    assert len(json.loads(selected.stdout)["selected"]) == 2


MISSING = [
    (["generate", "effect", "it rained all day"], "write"),
    (["sign", "It rained.", "--encoder", "fast"], "encode"),
    (["sign", "It rained.", "--encoder", "sbert"], "encode"),
    (["sts", "sts.csv", "--encoder", "static"], "evaluate"),
    (["train", "corpus", "-o", "run"], "train"),
    (["evaluate", "data.tsv", "-o", "report"], "evaluate"),
    (["bundle", "export", "run", "-o", "bundle"], "train"),
    (["serve", "--port", "0"], "serve"),
    (["mcp"], "mcp"),
    (["study", "new", "outputs.jsonl", "-o", "study"], "study"),
]


@pytest.mark.parametrize(("arguments", "extra"), MISSING, ids=[" ".join(row[0][:2]) for row in MISSING])
def test_a_missing_extra_says_which_install_brings_it(
    base: Path, arguments: list[str], extra: str, tmp_path: Path
) -> None:
    (tmp_path / "sts.csv").write_text("a b,a c,1\nd e,d f,2\n")
    (tmp_path / "outputs.jsonl").write_text("{}\n")
    done = run(base / "cod3s", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert f"pip install 'cod3s[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_wheels_hold_what_they_should_and_no_more(distributions: Path) -> None:
    with zipfile.ZipFile(wheel_of("cod3s", distributions)) as wheel:
        names = wheel.namelist()
    for part in ("py.typed", "licenses/LICENSE", "licenses/LICENSE-APACHE", "licenses/NOTICE", "web/static/"):
        assert any(part in name for name in names), part
    assert not any(name.startswith(("tests/", "benchmarks/", "cod3s_bundle")) for name in names)
    assert wheel_of("cod3s", distributions).stat().st_size < 1.5e6
    with zipfile.ZipFile(wheel_of("cod3s_bundle", distributions)) as wheel:
        assert "cod3s_bundle/default/bundle.json" in wheel.namelist()
    assert wheel_of("cod3s_bundle", distributions).stat().st_size < 95e6


def test_the_sdist_holds_what_the_wheel_is_built_from(distributions: Path) -> None:
    with tarfile.open(next(distributions.glob("cod3s-*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert {"pyproject.toml", "README.md", "LICENSE", "LICENSE-APACHE", "NOTICE"} | modules <= names


def test_the_metadata_pass_the_check_of_the_index(distributions: Path) -> None:
    run_module(["twine", "check", "--strict", *distributions.glob("*.whl"), *distributions.glob("*.tar.gz")])


def test_engine_and_bundle_make_ten_answers(base: Path, distributions: Path, tmp_path: Path) -> None:
    """The last test of this page, as it changes the environment."""
    install(base, wheel_of("cod3s_bundle", distributions), f"{wheel_of('cod3s', distributions)}[write]")
    source = "the power went out during dinner"
    done = run(base / "cod3s", "generate", "effect", source, "--show-doubtful", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len({answer["text"] for answer in json.loads(done.stdout)["answers"]}) == 10


def test_the_sbom_names_the_package_and_its_parts(tmp_path: Path) -> None:
    target = tmp_path / "sbom.json"
    run_module(
        ["cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml", "-o", target, sys.executable]
    )
    sbom = json.loads(target.read_text(encoding="utf-8"))
    assert sbom["bomFormat"] == "CycloneDX"
    assert sbom["metadata"]["component"]["name"] == "cod3s"
    assert "ctranslate2" in {part["name"].lower() for part in sbom["components"]}
