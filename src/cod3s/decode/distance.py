"""The Hamming rule: of signatures in rank order, keep k that differ in more than t bits. Knows no scores.

| mode | when fewer than k lie apart |
|---|---|
| relax | t is lowered step by step until k do; the t reached is told |
| refill | the best of those left out fill up the list, after those kept (the original's code) |
| strict | fewer are returned |
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cod3s.lsh import Packed, from_text, hamming, pack


@dataclass(frozen=True)
class KeptApart:
    """Places in the ranking that were kept, and the t in which they lie apart."""

    places: tuple[int, ...]
    min_hamming: int


def keep_apart(signatures: Sequence[str], k: int, *, min_hamming: int, mode: str = "relax") -> KeptApart:
    """Up to k places: greedy in rank order, each more than `min_hamming` bits from all kept before it."""
    if not signatures:
        return KeptApart((), min_hamming)
    packed = pack(np.stack([from_text(signature) for signature in signatures]))
    kept = _greedy(packed, k, min_hamming)
    while mode == "relax" and len(kept) < k and min_hamming > 0:
        min_hamming -= 1
        kept = _greedy(packed, k, min_hamming)
    if mode == "refill":
        left = (place for place in range(len(signatures)) if place not in set(kept))
        kept += [place for place, _ in zip(left, range(k - len(kept)), strict=False)]
    return KeptApart(tuple(kept), min_hamming)


def _greedy(packed: Packed, k: int, min_hamming: int) -> list[int]:
    kept: list[int] = []
    for place in range(len(packed)):
        if len(kept) == k:
            break
        if not kept or int(hamming(packed[place], packed[kept]).min()) > min_hamming:
            kept.append(place)
    return kept
