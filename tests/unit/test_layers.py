"""A module imports only what stands above it in the table of docs/architecture.md."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "cod3s"
ROW = re.compile(r"^\| `([a-z0-9_]+)/?` \|")


def layers() -> list[str]:
    lines = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()
    return [match[1] for line in lines if (match := ROW.match(line))]


def layer_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported_layers(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or ""]
            if node.module == "cod3s":
                names = [f"cod3s.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            pytest.fail(f"{path}: relative imports hide the layer; import from cod3s")
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("cod3s.")}
    return found - {"__version__"}


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem[0] != "_")


def test_the_table_names_every_module_once() -> None:
    on_disk = {layer_of(path) for path in MODULES}
    assert sorted(layers()) == sorted(on_disk)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_point_upward(path: Path) -> None:
    order = layers()
    own = order.index(layer_of(path))
    below = {name for name in imported_layers(path) if order.index(name) > own}
    assert not below, f"{path.name} stands above {below} in docs/architecture.md and must not import it"
