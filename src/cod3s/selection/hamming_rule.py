"""Method `signatures`: the paper's rule. Keep the best of each bin, from bins that are far enough apart.

Linear in the candidates: each is compared with the chosen rows alone, by popcount.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cod3s.selection.candidates import Rows
from cod3s.signatures import Packed, hamming, keep_apart

_BLOCK = 65_536


def choose_apart(
    packed: Packed, forms: Callable[[Rows], list[str]], k: int, *, min_hamming: int, strict: bool = False
) -> Rows:
    """Rows that differ in more than `min_hamming` bits, best first; unless `strict`, filled up to k.

    Each added row is the farthest from all chosen rows, the better on a tie. The paper fills up
    in rank order instead; but the highest of the dropped rows resemble the kept rows most.
    """
    kept = keep_apart(packed, min_hamming, k).kept
    if strict or len(kept) == min(k, len(packed)):
        return kept
    chosen = list(kept)
    distance = np.full(len(packed), np.iinfo(np.int16).max, np.int16)  # to the nearest chosen row
    for row in chosen:
        _bring_nearer(distance, packed, row)
    while len(chosen) < k and (farthest := int(distance.argmax())) not in chosen and distance[farthest] > 0:
        chosen.append(farthest)
        _bring_nearer(distance, packed, farthest)
    return np.array(chosen + _other_texts(forms, len(packed), chosen, k - len(chosen)), np.intp)


def _bring_nearer(distance: npt.NDArray[np.int16], packed: Packed, row: int) -> None:
    for start in range(0, len(distance), _BLOCK):
        rows = slice(start, start + _BLOCK)
        np.minimum(distance[rows], hamming(packed[rows], packed[row]), out=distance[rows], casting="unsafe")


def _other_texts(forms: Callable[[Rows], list[str]], rows: int, chosen: list[int], count: int) -> list[int]:
    """Up to `count` more rows, best first, whose text is not that of a chosen row though its bin is."""
    known = set(forms(np.array(chosen, np.intp)))
    more: list[int] = []
    for start in range(0, rows if count else 0, _BLOCK):
        block = np.setdiff1d(np.arange(start, min(start + _BLOCK, rows)), chosen)
        for row, form in zip(block.tolist(), forms(block), strict=True):
            if form not in known:
                known.add(form)
                more.append(row)
                if len(more) == count:
                    return more
    return more
