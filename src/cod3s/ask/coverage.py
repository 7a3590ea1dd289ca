"""Estimate how much of what a generator can say has been seen (Good and Turing, with calls as the draws).

Calls are counted, not texts, because the texts of a call depend on each other: a beam never repeats itself,
and a generator that always returns the same ten answers brings nothing new, however many texts that makes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cod3s.signatures import Packed, hamming, keep_apart


@dataclass(frozen=True)
class Coverage:
    """Bins that are far enough apart, and how many of them came up in exactly 1 call and in exactly 2."""

    calls: int
    bins: int
    once: int
    twice: int
    sightings: int  # of a bin in a call, summed over calls and bins

    @property
    def share(self) -> float:
        """The share of the generator's texts that fall in bins seen so far: 1 - once / sightings (Good 1953)."""
        return 1 - self.once / self.sightings if self.sightings else 0.0

    @property
    def unseen(self) -> float:
        """A lower bound on the number of bins not yet seen (Chao 1987, in the form for small samples)."""
        if not self.calls:
            return 0.0
        return (self.calls - 1) / self.calls * self.once * (self.once - 1) / (2 * (self.twice + 1))

    @property
    def expected_new(self) -> float:
        """How many new bins another call should bring: once / calls, kept above 0 while calls are few."""
        return (self.once + 0.5) / (self.calls + 1)


def measure_coverage(packed: Packed, calls: Sequence[int], min_hamming: int) -> Coverage:
    """Coverage after texts with these signatures; `calls` has the number of each text's call, from 0."""
    if not len(packed):
        return Coverage(0, 0, 0, 0, 0)
    leaders = keep_apart(packed, min_hamming).kept
    bins = hamming(packed[:, None], packed[leaders]).argmin(axis=1)  # the nearest, the earlier on a tie
    seen = np.unique(np.stack([bins, np.asarray(calls)], axis=1), axis=0)  # each bin once per call
    times = Counter(np.bincount(seen[:, 0]).tolist())
    return Coverage(len(set(calls)), len(leaders), times[1], times[2], len(seen))
