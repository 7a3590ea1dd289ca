"""The wheel and the sdist in fresh virtual environments: light, complete, and without torch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def base(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a new environment that holds the wheel, what it needs, and nothing else."""
    folder = tmp_path_factory.mktemp("base")
    install(folder, next(distributions.glob("*.whl")))
    return folder / "bin"


def install(folder: Path, *arguments: str | Path) -> None:
    """Make a virtual environment in `folder` and install into it."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    made = subprocess.run(
        [folder / "bin" / "pip", "install", "--quiet", *arguments], capture_output=True, text=True, check=False
    )
    if made.returncode and "No matching distribution" in made.stderr + made.stdout:
        pytest.skip("no package index can be reached from here")
    assert made.returncode == 0, made.stderr


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["COD3S_CACHE"] = str(cwd / "cache")  # an earlier conversion would serve without the extra
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=environment)


@pytest.mark.slow
def test_the_base_install_has_no_torch(base: Path, tmp_path: Path) -> None:
    listed = json.loads(run(base / "pip", "list", "--format", "json", cwd=tmp_path).stdout)
    names = {package["name"].lower() for package in listed}
    assert "cod3s" in names
    assert not names & {"torch", "transformers", "sentence-transformers", "scipy"}


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["import cod3s", "import cod3s.cli.main"])
def test_importing_is_light(base: Path, statement: str, tmp_path: Path) -> None:
    """The best of five, because the first run also compiles the byte code and the machine is noisy."""
    script = f"import sys, time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t); "
    script += "print(*(name for name in ('torch', 'numpy', 'ctranslate2', 'wordllama') if name in sys.modules))"
    runs = [run(base / "python", "-c", script, cwd=tmp_path).stdout.splitlines() for _ in range(5)]
    assert min(float(seconds) for seconds, _ in runs) < 0.5
    assert all(not heavy for _, heavy in runs), "heavy libraries belong where they are used"


@pytest.mark.slow
def test_the_command_line_works_in_the_base_install(base: Path, tmp_path: Path) -> None:
    assert "sign" in run(base / "cod3s", "--help", cwd=tmp_path).stdout
    signed = run(base / "cod3s", "sign", "--encoder", "static", "It rained.", "--json", cwd=tmp_path)
    assert len(json.loads(signed.stdout)["sentences"][0]["signature"]) == 16


@pytest.mark.slow
def test_the_base_install_gives_ten_answers(base: Path, tmp_path: Path) -> None:
    done = run(base / "cod3s", "generate", "effect", "the power went out during dinner", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len({answer["text"] for answer in json.loads(done.stdout)["answers"]}) == 10


@pytest.mark.slow
def test_a_bundle_can_be_asked_what_it_is_in_the_base_install(base: Path, tmp_path: Path) -> None:
    done = run(base / "cod3s", "bundle", "info", ".", cwd=tmp_path)
    assert done.returncode == 1
    assert "is not a bundle" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["sign", "It rained.", "--encoder", "fast"], "cod3s[encode]"),
        (["sign", "It rained.", "--encoder", "sbert"], "cod3s[encode]"),
        (["sts", "sts.csv", "--encoder", "static"], "cod3s[evaluate]"),
        (["train", "corpus", "-o", "run"], "cod3s[train]"),
        (["evaluate", "data.tsv", "-o", "report"], "cod3s[evaluate]"),
        (["bundle", "export", "run", "-o", "bundle"], "cod3s[train]"),
        (
            ["bins", "build", "texts.parquet", "--column", "text", "-o", "bins", "--encoder", "static"],
            "cod3s[corpus]",
        ),
    ],
)
def test_a_missing_extra_says_which_install_brings_it(
    base: Path, arguments: list[str], extra: str, tmp_path: Path
) -> None:
    (tmp_path / "sts.csv").write_text("a b,a c,1\nd e,d f,2\n")
    (tmp_path / "texts.parquet").write_bytes(b"anything")
    done = run(base / "cod3s", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert f"pip install '{extra}'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_sdist_installs_with_the_bundle(distributions: Path, base: Path, tmp_path: Path) -> None:
    """pip installs an sdist by building a wheel from it, which is how the wheel in `base` came about."""
    script = "import cod3s, pathlib; print(cod3s.__version__); "
    script += "print(*pathlib.Path(cod3s.__file__).parent.glob('data/*/bundle.json'))"
    printed = run(base / "python", "-c", script, cwd=tmp_path).stdout.split()
    assert distributions.joinpath(f"cod3s-{printed[0]}.tar.gz").is_file()
    assert len(printed) == 2


@pytest.mark.slow
def test_serving_needs_an_extra_that_the_docker_image_brings(base: Path, tmp_path: Path) -> None:
    done = run(base / "cod3s", "serve", "--port", "0", cwd=tmp_path)
    assert "pip install 'cod3s[serve]'" in done.stderr
    assert ".[serve]" in (Path(__file__).parent.parent / "Dockerfile").read_text()
