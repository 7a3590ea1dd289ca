"""Semantic diversity of a set of answers, from their unit vectors.

Degenerate sets have values: fewer than two answers have no diversity (0; Vendi score 1 for a single answer, 0 for
none), and equal texts are at distance 0 even if the encoder knows none of their words (a vector of zeros).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors

Distances = npt.NDArray[np.float64]

PARAPHRASE = 0.1
"""Cosine distance below which two completed statements say the same thing: the paper's choice (appendix D)."""
THRESHOLDS = (0.0, PARAPHRASE, 0.25, 0.5, 0.75)
"""Of the distinct count, as in the paper's table 2."""


def cosine_distances(texts: Sequence[str], vectors: Vectors) -> Distances:
    """1 - cosine of all pairs, (n, n), symmetric, 0 to 2; exactly 0 for equal texts."""
    exact = vectors.astype(np.float64)
    distances: Distances = np.clip(1.0 - exact @ exact.T, 0.0, 2.0)
    firsts: dict[str, int] = {}
    first = np.array([firsts.setdefault(text, position) for position, text in enumerate(texts)], np.intp)
    distances[first[:, None] == first] = 0.0
    return distances


def mean_distance(distances: Distances) -> float:
    """The paper's semantic diversity: the mean distance over ordered pairs."""
    number = len(distances)
    return float(distances.sum() / (number * (number - 1))) if number > 1 else 0.0


def vendi_score(distances: Distances) -> float:
    """The effective number of different answers (Friedman and Dieng 2023): 1 if all are equal, n if orthogonal.

    The exponential of the entropy of the eigenvalues of the similarity matrix divided by n.
    """
    if not len(distances):
        return 0.0
    values = np.linalg.eigvalsh((1.0 - distances) / len(distances))
    values = values[values > 1e-12]  # rounding leaves tiny negative ones
    return float(np.exp(-(values * np.log(values)).sum()))


def distinct(distances: Distances, threshold: float) -> list[int]:
    """The positions of the answers without duplicates, chosen greedily in order (appendix D of the paper).

    A duplicate is closer than `threshold` to an earlier answer that was kept; at 0 there are none, as in the
    paper.
    """
    kept: list[int] = []
    for position, row in enumerate(distances):
        if not any(row[earlier] < threshold for earlier in kept):
            kept.append(position)
    return kept
