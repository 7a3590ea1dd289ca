"""The Hamming rule: of signatures in rank order, keep those that lie apart. Packed signatures in, rows out.

Section 4 of the paper: going down the ranking, a signature is dropped that lies within `min_hamming` bits of one
that was kept. The original does not forget the dropped ones: they follow the kept ones, and fill up a short list.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.errors import SignatureError
from cod3s.signatures.bits import Packed, hamming

Rows = npt.NDArray[np.intp]

_BLOCK = 16_384  # rows looked at together: memory stays flat, and a search that is done early ends early


@dataclass(frozen=True, eq=False)
class Apart:
    """What the rule kept and all other rows, each in rank order; together they are all rows, each once."""

    kept: Rows
    others: Rows

    def order(self) -> Rows:
        """The kept rows, then the demoted ones: the list that the original cuts at k."""
        return np.concatenate([self.kept, self.others])


def keep_apart(packed: Packed, min_hamming: int, k: int | None = None) -> Apart:
    """Greedily, best row first: the rows that differ from every kept one in more than `min_hamming` bits.

    Stops when `k` are kept. `min_hamming` 0 keeps one row of each signature, -1 keeps every row. Time grows with
    rows times kept rows, memory with the rows alone.
    """
    if packed.ndim != 2:
        raise SignatureError(f"packed signatures of shape {packed.shape} were given, (n, bytes) was needed")
    most = len(packed) if k is None else max(0, min(k, len(packed)))
    kept: list[int] = []
    for start in range(0, len(packed), _BLOCK):
        if len(kept) == most:
            break
        _scan(packed, np.arange(start, min(start + _BLOCK, len(packed))), min_hamming, most, kept)
    is_kept = np.zeros(len(packed), bool)
    is_kept[kept] = True
    return Apart(np.array(kept, np.intp), np.flatnonzero(~is_kept))


def _scan(packed: Packed, rows: Rows, min_hamming: int, most: int, kept: list[int]) -> None:
    """Add to `kept` the rows of one block that the rule lets through, until there are `most`."""
    for row in kept:
        rows = _further(packed, rows, row, min_hamming)
    while len(rows) and len(kept) < most:
        kept.append(int(rows[0]))
        rows = _further(packed, rows[1:], kept[-1], min_hamming)


def _further(packed: Packed, rows: Rows, row: int, min_hamming: int) -> Rows:
    if min_hamming < 0:
        return rows
    return rows[hamming(packed[rows], packed[row]) > min_hamming]
