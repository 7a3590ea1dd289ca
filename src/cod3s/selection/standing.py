"""Which chosen candidate stands for which of the others: the most similar one, if they say about the same."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors
from cod3s.selection.candidates import Rows
from cod3s.signatures import Packed, hamming

_BLOCK = 65_536


@dataclass(frozen=True, eq=False)
class Standing:
    """For each row, the number of the chosen row that stands for it, or -1; and their cosine, if it is known."""

    number: npt.NDArray[np.intp]
    similarity: npt.NDArray[np.float64] | None


def standing_by_cosine(vectors: Vectors, same_text: Rows, rows: Rows, same_cosine: float) -> Standing:
    """By vectors; `same_text` names for each row the first row with the same text, which is the same anyway."""
    cosines = vectors @ vectors[rows].T if len(rows) else np.empty((len(vectors), 0), np.float32)
    number = np.full(len(vectors), -1)
    similarity = np.zeros(len(vectors))
    if len(rows):
        number = cosines.argmax(axis=1)
        similarity = np.clip(np.take_along_axis(cosines, number[:, None], axis=1)[:, 0], -1, 1).astype(np.float64)
        place = np.full(len(vectors), -1)
        place[rows] = np.arange(len(rows))
        twin = place[same_text] >= 0
        number[twin], similarity[twin] = place[same_text][twin], 1.0
        number[similarity < same_cosine] = -1
        number[rows] = -1
    return Standing(number, similarity)


def standing_by_hamming(packed: Packed, rows: Rows, min_hamming: int) -> Standing:
    """By signatures, where no vectors are held."""
    number = np.full(len(packed), -1)
    for start in range(0, len(packed) if len(rows) else 0, _BLOCK):
        block = slice(start, start + _BLOCK)
        distances = np.stack([hamming(packed[block], packed[row]) for row in rows])  # (chosen, block)
        number[block] = np.where(distances.min(axis=0) <= min_hamming, distances.argmin(axis=0), -1)
    number[rows] = -1
    return Standing(number, None)
