"""Method `kmedoids`: k clusters around k of the candidates; each is represented by its best candidate.

Alternating assignment and medoids (Park and Jun 2009) from a seeded k-means++ start. For unit vectors a medoid
is computed in linear time (`cod3s.bins.medoids`), so a round is linear in the candidates.
"""

import numpy as np
import numpy.typing as npt

from cod3s.bins.medoids import group_medoids
from cod3s.encode import Vectors
from cod3s.selection.candidates import Rows, Scores

_ROUNDS = 30


def choose_kmedoids(vectors: Vectors, quality: Scores, k: int, *, seed: int) -> Rows:
    """The best row of each cluster, or its medoid where quality does not differ, in rank order."""
    medoids = _start(vectors, min(k, len(vectors)), np.random.default_rng(seed))
    for _ in range(_ROUNDS):
        cluster = _assign(vectors, medoids)
        moved = _medoids(vectors, cluster)
        if np.array_equal(moved, medoids):
            break
        medoids = moved
    if not quality.any():
        return np.sort(medoids)
    _, best = np.unique(_assign(vectors, medoids), return_index=True)  # rows are in rank order
    return np.sort(best)


def _start(vectors: Vectors, k: int, draw: np.random.Generator) -> Rows:
    """k different rows: the medoid of all, then each drawn with probability ~ squared distance to the nearest."""
    chosen = [int(group_medoids(vectors, np.zeros(1, np.intp))[0])]
    distance = np.full(len(vectors), np.inf)
    while len(chosen) < k:
        np.minimum(distance, _distance(vectors, chosen[-1]), out=distance)
        distance[chosen] = 0
        if not distance.any():
            break  # the others all coincide with a chosen row
        chosen.append(int(draw.choice(len(vectors), p=distance / distance.sum())))
    rest = np.setdiff1d(np.arange(len(vectors)), chosen)
    return np.concatenate([np.array(chosen, np.intp), rest[: k - len(chosen)]])


def _distance(vectors: Vectors, row: int) -> npt.NDArray[np.float64]:
    """Squared Euclidean distance of unit vectors: 2 - 2 cosines."""
    distance: npt.NDArray[np.float64] = np.maximum(2 - 2 * (vectors @ vectors[row]).astype(np.float64), 0)
    return distance


def _assign(vectors: Vectors, medoids: Rows) -> Rows:
    """The cluster of each row; a medoid belongs to its own, so that no cluster is empty."""
    cluster: Rows = (vectors @ vectors[medoids].T).argmax(axis=1)
    cluster[medoids] = np.arange(len(medoids))
    return cluster


def _medoids(vectors: Vectors, cluster: Rows) -> Rows:
    order = np.argsort(cluster, kind="stable")
    starts = np.searchsorted(cluster[order], np.arange(cluster.max() + 1))
    return order[group_medoids(vectors[order], starts)]
