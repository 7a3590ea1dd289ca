"""Method `signatures`: the paper's rule. Keep the best of each bin, from bins that are far enough apart.

Linear in the candidates: each is compared with the chosen rows alone, by popcount.
"""

import numpy as np

from cod3s.selection.candidates import Pool, Rows
from cod3s.signatures import hamming, keep_apart

_BLOCK = 65_536


def choose_apart(pool: Pool, k: int, *, min_hamming: int, strict: bool = False) -> Rows:
    """Rows that differ in more than `min_hamming` bits, best first; unless `strict`, filled up to k.

    Each added row is the farthest from all chosen rows, the better on a tie. The paper fills up
    in rank order instead; but the highest of the dropped rows resemble the kept rows most.
    """
    kept = keep_apart(pool.packed, min_hamming, k).kept
    if strict or len(kept) == min(k, len(pool.packed)):
        return kept
    return _filled(pool, kept, k)


def _filled(pool: Pool, kept: Rows, k: int) -> Rows:
    chosen = list(kept)
    distance = np.full(len(pool.packed), np.iinfo(np.int16).max, np.int16)  # to the nearest chosen row
    for row in chosen:
        _bring_nearer(distance, pool, row)
    while len(chosen) < k and (farthest := int(distance.argmax())) not in chosen and distance[farthest] > 0:
        chosen.append(farthest)
        _bring_nearer(distance, pool, farthest)
    return np.array(chosen + _unlike(pool, chosen, k - len(chosen)), np.intp)


def _bring_nearer(distance: np.ndarray, pool: Pool, row: int) -> None:
    for start in range(0, len(distance), _BLOCK):
        rows = slice(start, start + _BLOCK)
        np.minimum(
            distance[rows], hamming(pool.packed[rows], pool.packed[row]), out=distance[rows], casting="unsafe"
        )


def _unlike(pool: Pool, chosen: list[int], count: int) -> list[int]:
    """Up to `count` more rows, best first, whose text is not that of a chosen row though its bin is."""
    taken = set(chosen)
    forms = {pool.form(row) for row in chosen}
    more: list[int] = []
    for row in range(len(pool.packed)):
        if len(more) == count:
            break
        if row not in taken and (form := pool.form(row)) not in forms:
            forms.add(form)
            more.append(row)
    return more
