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
FULL_SHARE = 0.5  # of the mean number of others, n / k - 1: a representative of fewer counts less
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
    cover = np.full(len(cosines), cosines.min())
    gain = count @ np.maximum(cosines - cover[:, None], 0)
    pool = np.empty(size, np.intp)
    left = weight.copy()
    for number in range(size):
        pool[number] = best = (gain * left).argmax()
        left[best] = -1
        row = cosines[best]
        (closer,) = (row > cover).nonzero()
        before, now = cover[closer, None], row[closer, None]
        gain -= count[closer] @ (np.minimum(np.maximum(cosines[closer], before), now) - before)
        cover[closer] = now[:, 0]
    return pool


def _drop_least(cosines: Floats, pool: Rows, weight: Floats, count: Floats, k: int) -> Rows:
    """k rows of the pool. Dropping one updates the inverse of the kernel instead of computing it again."""
    among = cosines[pool][:, pool]
    size = np.bincount(cosines[pool].argmax(axis=0), weights=count, minlength=len(pool))
    full = FULL_SHARE * (count.sum() / k - 1) + _RIDGE
    inverse = np.linalg.inv((1 + among) / 2 + _RIDGE * np.eye(len(pool)))
    among.flat[:: len(pool) + 1] = -2
    gone = np.zeros(len(pool), bool)
    for _ in range(len(pool) - k):
        loss = weight[pool] * np.minimum(1, size / full) ** SIZE_POWER / inverse.diagonal()
        loss[gone] = np.inf
        row = int(loss.argmin())
        gone[row] = True
        among[:, row] = -2
        size[among[row].argmax()] += size[row]
        column = inverse[:, row]
        inverse -= column[:, None] * (column / column[row])
        inverse[row, row] = 1.0
    return pool[~gone]
