"""Methods `mmr` and `dpp`, which choose greedily, row by row; `dpp` then swaps rows while that helps.

`mmr` is maximal marginal relevance (Carbonell and Goldstein 1998). `dpp` is the most probable set of a
determinantal point process, greedily by Chen, Zhang and Zhou (2018). Its kernel is quality x similarity x quality;
only the rows of chosen candidates are ever computed, so n candidates need memory for n x k numbers, not n x n.
"""

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors
from cod3s.selection.candidates import Rows, Scores

Floats = npt.NDArray[np.float64]

_TINY = 1e-9  # a gain below this is rounding: the row adds no volume
_ROUNDS = 5  # of swaps; most sets are settled after two


def choose_mmr(vectors: Vectors, quality: Scores, k: int, *, score_weight: float) -> Rows:
    """Rows as they are chosen, each the best by w x quality - (1 - w) x cosine to the most similar chosen row."""
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


def choose_dpp(vectors: Vectors, quality: Scores, k: int, *, score_weight: float) -> Rows:
    """Rows that span the largest volume, in rank order: chosen greedily, then exchanged while that adds volume."""
    weight = weights_of(quality, score_weight)
    chosen = choose_greedily(vectors, weight, k)
    if 1 < len(chosen) < len(vectors):
        chosen = _exchange(vectors, weight, chosen)
    return np.sort(chosen)


def choose_greedily(vectors: Vectors, weight: Floats, k: int) -> Rows:
    """Rows that greedily span the largest volume; once no row adds volume, the best of the rest follow.

    Similarity is (1 + cosine) / 2, which is positive definite like the cosine and never negative.
    """
    gain = weight**2  # squared volume that each row would add
    basis = np.zeros((min(k, len(vectors)), len(vectors)))  # rows of the incremental Cholesky factor
    chosen: list[int] = []
    while len(chosen) < len(basis):
        best = int(gain.argmax())
        if gain[best] < _TINY:
            break
        earlier = basis[: len(chosen)]
        step = (_kernel_row(vectors, weight, best) - earlier.T @ earlier[:, best]) / np.sqrt(gain[best])
        basis[len(chosen)] = step
        chosen.append(best)
        gain -= step**2
        gain[chosen] = -np.inf
    rest = np.setdiff1d(np.arange(len(vectors)), chosen)
    return np.concatenate([np.array(chosen, np.intp), rest[: len(basis) - len(chosen)]])


def weights_of(quality: Scores, score_weight: float) -> Floats:
    """What a row's similarity is multiplied by: exp(w / (2 (1 - w)) q) for a score weight w and a quality q."""
    weights: Floats = np.exp(score_weight / (2 * (1 - score_weight)) * quality)
    return weights


def _exchange(vectors: Vectors, weight: Floats, chosen: Rows) -> Rows:
    """Exchange chosen rows in turn, each for the row that adds most volume to the others, until none adds more."""
    rows: Rows = chosen.copy()
    kernel = np.stack([_kernel_row(vectors, weight, row) for row in rows])  # (k, n)
    for _ in range(_ROUNDS):
        moved = False
        for position in range(len(rows)):
            others = np.delete(np.arange(len(rows)), position)
            gain = _gains(kernel[others], rows[others], weight)
            best = int(gain.argmax())
            if gain[best] > gain[rows[position]] * (1 + 1e-6) + _TINY:
                rows[position], moved = best, True
                kernel[position] = _kernel_row(vectors, weight, best)
        if not moved:
            break
    return rows


def _kernel_row(vectors: Vectors, weight: Floats, row: int) -> Floats:
    values: Floats = weight * weight[row] * (1 + vectors @ vectors[row]) / 2
    return values


def _gains(kernel: Floats, others: Rows, weight: Floats) -> Floats:
    """The squared volume that each row would add to `others`; none for the others themselves."""
    inverse = np.linalg.pinv(kernel[:, others], hermitian=True)
    gain: Floats = weight**2 - np.einsum("kn,kn->n", kernel, inverse @ kernel)
    gain[others] = -np.inf
    return gain
