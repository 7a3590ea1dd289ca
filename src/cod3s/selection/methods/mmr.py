"""Method `mmr`: maximal marginal relevance (Carbonell and Goldstein 1998), linear in the candidates."""

import numpy as np

from cod3s.encode import Vectors
from cod3s.selection.candidates import Rows, Scores


def choose_mmr(vectors: Vectors, quality: Scores, k: int, *, score_weight: float) -> Rows:
    """One row after the other: the best by w x quality - (1 - w) x cosine to the most similar chosen row."""
    nearest = np.full(len(vectors), -1.0)  # cosine to the most similar chosen row
    chosen: list[int] = []
    worth = score_weight * quality
    for _ in range(min(k, len(vectors))):
        gain = worth - (1 - score_weight) * nearest
        gain[chosen] = -np.inf
        best = int(gain.argmax())
        chosen.append(best)
        np.maximum(nearest, vectors @ vectors[best], out=nearest)
    return np.array(chosen, np.intp)
