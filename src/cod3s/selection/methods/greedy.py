"""Methods `mmr` and `dpp`, which choose greedily, row by row; `dpp` then swaps rows while that helps.

`mmr` is maximal marginal relevance (Carbonell and Goldstein 1998). `dpp` is the most probable set of a
determinantal point process, greedily by Chen, Zhang and Zhou (2018). Its kernel is quality x similarity x quality;
only the rows of chosen candidates are ever computed, so n candidates need memory for n x k numbers, not n x n.
"""

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors
from cod3s.encode.protocol import unit
from cod3s.selection.candidates import Rows, Scores
from cod3s.signatures import SEED

Floats = npt.NDArray[np.float64]

_TINY = 1e-9  # a gain below this is rounding: the row adds no volume
_SAMPLED = 1_000  # rows among which neighbours are looked for
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


def take_away_shared(vectors: Vectors, share: float) -> Vectors:
    """Unit vectors after a share of their mean is subtracted.

    Candidates for a prompt share its topic, which hides how they differ (docs/measured/select.md).
    """
    return unit(vectors - np.float32(share) * vectors.mean(axis=0)) if share else vectors


def choose_dpp(
    vectors: Vectors, quality: Scores, k: int, *, score_weight: float, typical_weight: float = 0.0
) -> Rows:
    """Rows that span the largest volume, in rank order: chosen greedily, then exchanged while that adds volume.

    With a `typical_weight`, rows that have near neighbours count slightly more: the usual wording of a meaning
    stands for it better than an odd one, which only seems to be a meaning of its own.
    """
    weight = _weights(quality, score_weight)
    if typical_weight:
        weight = weight * np.exp(typical_weight / 2 * _typicality(vectors))
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


def _weights(quality: Scores, score_weight: float) -> Floats:
    """What a row's similarity is multiplied by: exp(w / (2 (1 - w)) q) for a score weight w and a quality q."""
    weights: Floats = np.exp(score_weight / (2 * (1 - score_weight)) * quality)
    return weights


def _typicality(vectors: Vectors) -> Floats:
    """The mean cosine of each row to its two nearest neighbours in a sample, in units of its spread.

    It is rounded, so that rows that are about as typical stay in their order.
    """
    sample = np.random.default_rng(SEED).permutation(len(vectors))[:_SAMPLED]
    cosines = (vectors @ vectors[sample].T).astype(np.float64)  # (rows, sample)
    cosines[sample, np.arange(len(sample))] = -1.0  # no row is its own neighbour
    nearest = np.sort(cosines, axis=1)[:, -2:].mean(axis=1)
    typicality: Floats = np.round((nearest - nearest.mean()) / max(float(nearest.std()), _TINY), 2)
    return typicality


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
