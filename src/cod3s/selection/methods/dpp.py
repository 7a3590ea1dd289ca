"""Method `dpp`: the greedy most probable set of a determinantal point process (Chen, Zhang and Zhou 2018).

The kernel is quality x similarity x quality. One row of it is made at a time, so that n candidates need
memory for n x k numbers, not n x n.
"""

import numpy as np

from cod3s.encode import Vectors
from cod3s.selection.candidates import Rows, Scores

_TINY = 1e-9  # a gain below this is rounding: the row adds no volume


def choose_dpp(vectors: Vectors, quality: Scores, k: int, *, score_weight: float) -> Rows:
    """Rows that greedily span the largest volume; `score_weight` w scales quality by exp(w / (2 (1 - w)) q).

    Similarity is (1 + cosine) / 2, which is positive definite like the cosine and never negative. Where no row
    adds volume any more, the best of the rest follow.
    """
    weight = np.exp(score_weight / (2 * (1 - score_weight)) * quality)
    gain = weight**2  # squared volume that each row would add
    basis = np.zeros((min(k, len(vectors)), len(vectors)))  # rows of the incremental Cholesky factor
    chosen: list[int] = []
    while len(chosen) < len(basis):
        best = int(gain.argmax())
        if gain[best] < _TINY:
            break
        similarity = weight * weight[best] * (1 + vectors @ vectors[best]) / 2
        step = (similarity - basis[: len(chosen)].T @ basis[: len(chosen), best]) / np.sqrt(gain[best])
        basis[len(chosen)] = step
        chosen.append(best)
        gain -= step**2
        gain[chosen] = -np.inf
    rest = np.setdiff1d(np.arange(len(vectors)), chosen)
    return np.concatenate([np.array(chosen, np.intp), rest[: len(basis) - len(chosen)]])
