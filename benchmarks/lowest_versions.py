"""The lowest versions of the base dependencies that pyproject.toml allows, as requirements for pip.

python benchmarks/lowest_versions.py > lowest.txt
"""

import re
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def lowest_versions(project: str) -> list[str]:
    """`name==version` for each base dependency."""
    base = project.partition("\ndependencies = [")[2].partition("]")[0]
    return [f"{name}=={version}" for name, version in re.findall(r'"([\w-]+)>=([\w.]+)', base)]


if __name__ == "__main__":
    print("\n".join(lowest_versions(PROJECT.read_text(encoding="utf-8"))))
