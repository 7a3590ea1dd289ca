"""How well signatures are inferred: rank and recall of the gold target's signature among the guesses."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cod3s.signatures import hamming, pack_texts

DEPTHS = (1, 3, 10, 100)
RADII = (0, 1, 2, 3)


@dataclass(frozen=True)
class Guess:
    """The signature of a source's gold target, and the guesses, best first; there is at least one."""

    gold: str
    ranked: tuple[str, ...]

    @property
    def rank(self) -> int | None:
        """The rank of the gold signature, from 1; None if it is not among the guesses."""
        return self.ranked.index(self.gold) + 1 if self.gold in self.ranked else None


@dataclass(frozen=True)
class Recall:
    """The share of sources with any of the first `depth` guesses within `radius` bits of the gold signature."""

    depth: int
    radius: int
    recall: float


@dataclass(frozen=True)
class InferenceScores:
    """`found` is the share of gold signatures among the guesses; `median_rank` counts the others as last."""

    sources: int
    guesses: int  # per source, at most
    found: float
    median_rank: float
    recalls: tuple[Recall, ...]


def score_inference(guesses: Sequence[Guess]) -> InferenceScores:
    """The figures of these guesses, of which there is at least one."""
    distances = [hamming(pack_texts(guess.ranked), pack_texts([guess.gold])) for guess in guesses]
    deepest = max(len(guess.ranked) for guess in guesses)
    ranks = [guess.rank for guess in guesses]
    recalls = tuple(
        Recall(depth, radius, float(np.mean([bool((row[:depth] <= radius).any()) for row in distances])))
        for depth in DEPTHS
        if depth <= deepest
        for radius in RADII
    )
    share = float(np.mean([rank is not None for rank in ranks]))
    median = float(np.median([rank or deepest + 1 for rank in ranks]))
    return InferenceScores(len(guesses), deepest, share, median, recalls)
