"""The notebooks and scripts of examples/ run to their end, and notebooks are stored without outputs."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from conftest import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture(autouse=True)
def source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels and scripts import the cod3s of this checkout."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_to_its_end(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    printed = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any(output.get("text", "").strip() for output in printed)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_with_text(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert notebook.cells[0].cell_type == "markdown"


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs_to_its_end(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, path], capture_output=True, encoding="utf-8", env=os.environ, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 3


def test_the_table_of_examples_names_every_example() -> None:
    table = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert all(f"({path.name})" in table for path in [*NOTEBOOKS, *SCRIPTS])
    assert len(NOTEBOOKS) == 3
