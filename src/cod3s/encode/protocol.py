"""The `Encoder` protocol, and the batching and scaling that encoders share."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


class Encoder(Protocol):
    """Encodes sentences as unit vectors. `id` names model, weights and backend: signatures depend on all three."""

    @property
    def id(self) -> str: ...

    @property
    def dim(self) -> int: ...

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Unit vectors, float32 (n, dim), in the order of the sentences; zeros for unknown text."""
        ...


def unit(vectors: npt.NDArray[np.floating]) -> Vectors:
    """Rows scaled to length 1; rows of zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    scaled = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    result: Vectors = scaled.astype(np.float32, copy=False)
    return result


def length_sorted_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Indices in batches of similar length, each at most `max_tokens` when padded (or a single sequence)."""
    batches: list[list[int]] = []
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[index] > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(index)
    if batch:
        batches.append(batch)
    return batches
