"""Say how well a target goes with a source, by their vectors: a learned map brings sources near their targets.

A cosine says whether two sentences are about the same thing; an association also knows what follows from what (a
storm and a fallen tree). `cod3s associate` learns it from pairs.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cod3s.encode import Vectors
from cod3s.errors import BundleError
from cod3s.io.arrays import load_half, save_half


@dataclass(frozen=True)
class Association:
    """A source's vector is scaled, and what a few directions of it say is added; then it is like its targets'."""

    scale: Vectors  # (dim,)
    down: Vectors  # (rank, dim)
    up: Vectors  # (rank, dim)

    def __call__(self, sources: Vectors, targets: Vectors) -> Vectors:
        """The cosine of each source, carried over, and its target: (pairs,)."""
        carried = sources * self.scale + sources @ self.down.T @ self.up
        lengths = np.linalg.norm(carried, axis=1).clip(1e-12)
        cosines: Vectors = np.einsum("nd,nd->n", carried, targets) / lengths
        return cosines


def save_association(path: Path, association: Association) -> None:
    """Write the map in half precision."""
    save_half(path, np.vstack([association.scale, association.down, association.up]))


def load_association(path: Path) -> Association:
    """The association in a file."""
    rows = load_half(path)
    if rows.ndim != 2 or len(rows) < 3 or len(rows) % 2 == 0 or not np.isfinite(rows).all():
        raise BundleError(f"{path} is not an association", hint="learn it again with `cod3s associate`")
    down, up = np.split(rows[1:], 2)
    return Association(rows[0], down, up)
