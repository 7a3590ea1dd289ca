"""The tiny bundle and corpus that campaigns work on: trained once, then kept in build/campaign."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in ("src", "benchmarks", "tests")),
    "TOKENIZERS_PARALLELISM": "false",
}
_MAKE = "import sys, pathlib, tiny_bundle; tiny_bundle.make_tiny_bundle(pathlib.Path(sys.argv[1]))"


def material() -> Path:
    """The folder that tests/tiny_bundle.py fills: corpus/, run/, exact/ and small/."""
    folder = ROOT / "build" / "campaign"
    if not (folder / "small" / "bundle.json").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-c", _MAKE, folder], env=ENVIRONMENT, check=True)
    return folder


def bundle_and_corpus() -> tuple[Path, Path]:
    return material() / "small", material() / "corpus"
