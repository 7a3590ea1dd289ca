"""Find exact medoids in linear time.

The medoid is the sentence with the smallest summed cosine distance to the others of its bin. For unit vectors
that sum is n - v·(v1 + … + vn), so the medoid is the row with the largest dot product with the group's sum.
"""

import numpy as np
import numpy.typing as npt

from cod3s.encode import Vectors

_ROWS = 16_384  # of a block


def group_sums(vectors: Vectors, starts: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
    """The vector sum of each run of rows that begins at `starts`, (groups, dim)."""
    sums: npt.NDArray[np.float64] = np.add.reduceat(vectors, starts, axis=0, dtype=np.float64)
    return sums


def group_medoids(vectors: Vectors, starts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The row of each group's medoid, the first on a tie; the rows of a group are consecutive."""
    sizes = np.diff(np.append(starts, len(vectors)))
    sums = group_sums(vectors, starts)
    scores = scores_against(vectors, np.repeat(np.arange(len(starts)), sizes), sums)
    return first_best(scores, starts)


def scores_against(
    vectors: Vectors, group: npt.NDArray[np.intp], sums: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Each row's dot product with the sum of its group, a block of rows at a time."""
    scores = np.empty(len(vectors))
    for start in range(0, len(vectors), _ROWS):
        block = slice(start, start + _ROWS)
        scores[block] = np.einsum("nd,nd->n", vectors[block], sums[group[block]])
    return scores


def first_best(scores: npt.NDArray[np.float64], starts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The first row of each group that reaches the group's best score."""
    ends = np.append(starts[1:], len(scores))
    best = np.repeat(np.maximum.reduceat(scores, starts), ends - starts)
    candidates = np.flatnonzero(scores >= best)
    return candidates[np.searchsorted(candidates, starts)]
