"""The default bundle of cod3s: weights and what belongs to them, in the folder `default`. No code."""

from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).parent / "default"
__version__ = version("cod3s-bundle")
