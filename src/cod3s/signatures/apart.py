"""The Hamming rule: of signatures in rank order, keep those that are far enough apart.

Section 4 of the paper: going down the ranking, a signature is dropped if it is within `min_hamming` bits of a
signature that was kept. What happens when fewer than k are kept depends on the mode:

| mode | if fewer than k are kept |
|---|---|
| strict | the result is shorter |
| relax | `min_hamming` is lowered step by step until k are kept; the result says how far |
| refill | the best of the dropped signatures fill up the list after the kept ones (as in the original's code) |
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.errors import SignatureError
from cod3s.signatures.bits import Packed, hamming, pack_texts

Rows = npt.NDArray[np.intp]

_BLOCK = 16_384  # rows compared together: memory stays flat, and a search that is done early ends early


@dataclass(frozen=True, eq=False)
class Apart:
    """The kept rows and all other rows, each in rank order; together they are all rows, each once."""

    kept: Rows
    others: Rows
    min_hamming: int  # the threshold in the end; only `relax` lowers it

    def order(self) -> Rows:
        """The kept rows, then the dropped ones."""
        return np.concatenate([self.kept, self.others])


def keep_apart(
    signatures: Packed | Sequence[str], min_hamming: int, k: int | None = None, mode: str = "strict"
) -> Apart:
    """Greedily, best row first: the rows that differ from every kept row in more than `min_hamming` bits.

    Signatures come packed, (n, bytes), or as strings of 0 and 1. Stops when `k` are kept. `min_hamming` 0 keeps
    a row per signature, -1 keeps every row. Time grows with rows times kept rows, memory with the rows alone.
    """
    packed = signatures if isinstance(signatures, np.ndarray) else pack_texts(signatures)
    if packed.ndim != 2:
        raise SignatureError(f"packed signatures of shape {packed.shape} were given, but (n, bytes) is needed")
    wanted = len(packed) if k is None else max(0, k)
    kept = _keep(packed, min_hamming, wanted)
    while mode == "relax" and len(packed) and len(kept) < wanted and min_hamming > 0:
        min_hamming -= 1
        kept = _keep(packed, min_hamming, wanted)
    dropped = np.ones(len(packed), bool)
    dropped[kept] = False
    apart = Apart(np.array(kept, np.intp), np.flatnonzero(dropped), min_hamming)
    if mode == "refill":
        order = apart.order()
        return Apart(order[:wanted], order[wanted:], min_hamming)
    return apart


def _keep(packed: Packed, min_hamming: int, wanted: int) -> list[int]:
    """Up to `wanted` rows that the rule keeps, a block at a time."""
    kept: list[int] = []
    for start in range(0, len(packed), _BLOCK):
        rows: Rows = np.arange(start, min(start + _BLOCK, len(packed)))
        for row in kept:
            rows = _further(packed, rows, row, min_hamming)
        while len(rows) and len(kept) < wanted:
            kept.append(int(rows[0]))
            rows = _further(packed, rows[1:], kept[-1], min_hamming)
        if len(kept) == wanted:
            break
    return kept


def _further(packed: Packed, rows: Rows, row: int, min_hamming: int) -> Rows:
    if min_hamming < 0:
        return rows
    return rows[hamming(packed[rows], packed[row]) > min_hamming]
