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

from cod3s.signatures import apart as hamming_rule
from cod3s.signatures import from_text, pack


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
    apart = hamming_rule.keep_apart(packed, min_hamming, k)
    while mode == "relax" and len(apart.kept) < k and min_hamming > 0:
        min_hamming -= 1
        apart = hamming_rule.keep_apart(packed, min_hamming, k)
    places = apart.order()[:k] if mode == "refill" else apart.kept
    return KeptApart(tuple(places.tolist()), min_hamming)
