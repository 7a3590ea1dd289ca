"""Thin many candidates out: one stands for each bin of a signature just long enough."""

import numpy as np
import numpy.typing as npt

from cod3s.selection.candidates import Rows
from cod3s.signatures import Packed

_KEY_BYTES = 8


def thin(packed: Packed, most: int) -> tuple[Rows, npt.NDArray[np.float64]]:
    """The best row of each bin (rows are in rank order), and how many rows the bin has.

    Bins share a prefix of their signatures, the longest that leaves at most `most` bins, up to 64 bits.
    """
    padded = np.zeros((len(packed), _KEY_BYTES), np.uint8)
    padded[:, : packed.shape[1]] = packed[:, :_KEY_BYTES]
    keys = padded.view(">u8")[:, 0].astype(np.uint64)
    ordered = np.sort(keys)
    changed = ordered[1:] ^ ordered[:-1]
    shift = 8 * _KEY_BYTES
    while shift and 1 + np.count_nonzero(changed >> np.uint64(shift - 1)) <= most:
        shift -= 1
    bins = keys >> np.uint64(shift) if shift < 8 * _KEY_BYTES else np.zeros_like(keys)
    _, rows, counts = np.unique(bins, return_index=True, return_counts=True)
    order = np.argsort(rows)
    return rows[order], counts[order].astype(np.float64)
