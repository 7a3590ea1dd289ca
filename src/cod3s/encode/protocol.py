"""What every encoder offers: sentences in, unit vectors out."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Encoder(Protocol):
    """Sentences in, unit vectors out. `id` names model, weights and backend: signatures of two ids never mix."""

    @property
    def id(self) -> str: ...

    @property
    def dim(self) -> int: ...

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Unit vectors, float32 (n, dim), in the order given; a text with no known token gives zeros."""
        ...


def unit(vectors: npt.NDArray[np.floating]) -> Vectors:
    """Rows scaled to length one; rows of zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    result: Vectors = scaled.astype(np.float32, copy=False)
    return result
