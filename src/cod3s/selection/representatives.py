"""Method `representatives`: how well the chosen stand for the rest, how far apart they are, how many like each.

First, twice k candidates are chosen that stand for all of them (facility location, greedily: each
adds most to the sum of the candidates' cosines to their nearest chosen one). Then, until k are left, the one goes
that loses least: its squared distance from the span of the others, less if it stands for few candidates.
"""

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors
from cod3s.selection.candidates import Rows

Floats = npt.NDArray[np.float64]

POOL = 2  # representatives per candidate to choose; docs/select.md says how the three were measured
FULL_SHARE = 0.5  # of the mean number n / k: a representative of fewer candidates counts less
SIZE_POWER = 0.35
_RIDGE = 1e-6  # keeps the kernel of identical candidates invertible


def choose_representatives(vectors: Vectors, weight: Floats, count: Floats, k: int) -> Rows:
    """Rows in rank order; `count` says how many candidates a row is, `weight` how much it is wanted."""
    rows = len(vectors)
    if rows <= k:
        return np.arange(rows)
    cosines = (vectors @ vectors.T).astype(np.float64)  # (rows, rows)
    pool = _stand_for_all(cosines, weight, count, min(rows, POOL * k))
    return np.sort(_drop_least(cosines, pool, weight, count, k))


def _stand_for_all(cosines: Floats, weight: Floats, count: Floats, size: int) -> Rows:
    """Greedy facility location. After a choice, only the rows that it stands for better are looked at again."""
    cover = np.full(len(cosines), float(cosines.min()))
    gain = np.maximum(cosines - cover[:, None], 0).T @ count
    pool = np.empty(size, np.intp)
    for number in range(size):
        value = gain * weight
        value[pool[:number]] = -1
        pool[number] = best = value.argmax()
        closer = np.flatnonzero(cosines[best] > cover)
        near, now = cosines[closer], cosines[best, closer]
        lost = np.maximum(near - cover[closer, None], 0) - np.maximum(near - now[:, None], 0)
        gain -= count[closer] @ lost
        cover[closer] = now
    return pool


def _drop_least(cosines: Floats, pool: Rows, weight: Floats, count: Floats, k: int) -> Rows:
    """k rows of the pool. Dropping one updates the inverse of the kernel instead of computing it again."""
    among = cosines[np.ix_(pool, pool)]
    size = np.bincount(cosines[pool].argmax(axis=0), weights=count, minlength=len(pool))
    full = FULL_SHARE * count.sum() / k
    inverse = np.linalg.inv((1 + among) / 2 + _RIDGE * np.eye(len(pool)))
    np.fill_diagonal(among, -2)
    left = np.ones(len(pool), bool)
    for _ in range(len(pool) - k):
        loss = weight[pool] * np.minimum(1, size / full) ** SIZE_POWER / np.diag(inverse)
        loss[~left] = np.inf
        row = int(loss.argmin())
        left[row] = False
        among[:, row] = -2
        size[among[row].argmax()] += size[row]
        inverse -= np.outer(inverse[:, row], inverse[row] / inverse[row, row])
        inverse[row, row] = 1.0
    return pool[left]
