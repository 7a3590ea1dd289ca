"""Which candidates become answers: each bin's candidates in, ranked, the chosen of each out; no text twice."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.decode.sentences import Candidate
from cod3s.encode import Vectors

Numbers = npt.NDArray[np.float64]


class Taken:
    """What one source has been answered so far, and where that lies."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._vectors: list[Vectors] = []

    def __contains__(self, candidate: Candidate) -> bool:
        """Whether its text was taken; letters' case is no difference."""
        return candidate.text.casefold() in self._texts

    def add(self, candidate: Candidate) -> None:
        self._texts.add(candidate.text.casefold())
        if candidate.vector is not None:
            self._vectors.append(candidate.vector)

    def nearness(self, candidates: Sequence[Candidate]) -> Numbers:
        """The cosine of each to the nearest answer so far; 0 where there is none yet."""
        if not self._vectors:
            return np.zeros(len(candidates))
        cosines = np.array([one.vector for one in candidates]) @ np.array(self._vectors).T  # (candidates, answers)
        nearest: Numbers = cosines.max(axis=1).astype(np.float64)
        return nearest


@dataclass(frozen=True)
class Weights:
    """What a bit off the bin costs a candidate, and what nearness to an answer of another bin does."""

    bit: float
    nearness: float

    def best(self, candidates: Sequence[Candidate], taken: Taken) -> int:
        """The place of the candidate with the best score less these; one that is not stale, if there is one."""
        scores = np.array([one.score for one in candidates])
        off = np.array([one.hamming or 0 for one in candidates])
        values = scores - self.bit * off - self.nearness * taken.nearness(candidates)
        return min(range(len(candidates)), key=lambda place: (candidates[place].stale, -values[place]))


def choose(
    bins: Sequence[Sequence[Candidate]], per_bin: int, taken: Taken, weights: Weights | None = None
) -> list[list[Candidate]]:
    """Of each bin `per_bin` that are not `taken`, to which they are added: the first, or the best by `weights`."""
    return [_choose(own, per_bin, taken, weights) for own in bins]


def _choose(own: Sequence[Candidate], per_bin: int, taken: Taken, weights: Weights | None) -> list[Candidate]:
    kept: list[Candidate] = []
    while len(kept) < per_bin and (left := [one for one in own if one not in taken]):
        one = left[weights.best(left, taken) if weights else 0]
        taken.add(one)
        kept.append(one)
    return kept
