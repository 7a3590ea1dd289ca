"""Read tables of labelled sentences and split them by group, for the recipes of the small classifiers."""

import csv
import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

FOLDS = 5


def read_examples(path: Path) -> tuple[list[str], list[str], list[str]]:
    """The columns text, kind and group of a table of examples."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row["text"] for row in rows], [row["kind"] for row in rows], [row["group"] for row in rows]


def folds_of(groups: list[str]) -> npt.NDArray[np.int64]:
    """A fold for each example; examples of a group share it, whatever else is in the table."""
    return np.array([int(hashlib.sha256(group.encode()).hexdigest(), 16) % FOLDS for group in groups])
