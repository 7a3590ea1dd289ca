"""Whether a difference is more than chance: signed-rank tests, Holm correction, bootstrap intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cod3s.errors import require

LEVEL = 0.05
RESAMPLES = 2000
MOST_EXACT = 50


@dataclass(frozen=True)
class Comparison:
    """Two systems on the sources that both answered: the mean difference a - b and its p-values."""

    a: str
    b: str
    sources: int
    difference: float
    p: float
    holm: float  # p corrected for all comparisons of a figure


def wilcoxon(a: Sequence[float], b: Sequence[float]) -> float:
    """The p-value of the two-sided signed-rank test; 1 if nothing differs or there is nothing to compare.

    Zero differences are dropped. Exact for up to 50 differences without ties, otherwise the normal
    approximation with its correction for ties (as in scipy when the paper was written; today it permutes small
    samples with ties, which is slow and changes little).
    """
    differences = np.asarray(a, np.float64) - np.asarray(b, np.float64)
    differences = differences[differences != 0]
    if not len(differences):
        return 1.0
    tied = len(np.unique(np.abs(differences))) < len(differences)
    method = "approx" if tied or len(differences) > MOST_EXACT else "exact"
    return float(require("scipy.stats", "evaluate").wilcoxon(differences, method=method).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for multiple tests (Holm 1979): the smallest times n, the next times n - 1, …"""
    number = len(p_values)
    corrected = [0.0] * number
    largest = 0.0
    for rank, index in enumerate(sorted(range(number), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (number - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


def compare_all(values: Mapping[str, Mapping[str, float]]) -> list[Comparison]:
    """Every pair of systems, from each system's value by source; Holm over all of these pairs."""
    tests = []
    for a, b in combinations(values, 2):
        shared = [source for source in values[a] if source in values[b]]
        left, right = ([values[name][source] for source in shared] for name in (a, b))
        difference = float(np.mean(left) - np.mean(right)) if shared else 0.0
        tests.append((a, b, len(shared), difference, wilcoxon(left, right)))
    corrected = holm([row[4] for row in tests])
    return [Comparison(*row, holm=value) for row, value in zip(tests, corrected, strict=True)]


def beaten(name: str, comparisons: Sequence[Comparison], lower_is_better: bool = False) -> bool:
    """Whether some system is significantly better than `name` (p below .05, uncorrected, as in the paper)."""
    sign = -1 if lower_is_better else 1
    return any(
        row.p < LEVEL and (sign * row.difference < 0 if row.a == name else sign * row.difference > 0)
        for row in comparisons
        if name in (row.a, row.b)
    )


def bootstrap_interval(values: Sequence[float], *, seed: int) -> tuple[float, float]:
    """The percentile interval of the mean over resampled sources; the same for the same seed."""
    if not len(values):
        return (float("nan"), float("nan"))
    array = np.asarray(values, np.float64)
    draws = np.random.default_rng(seed).integers(0, len(array), size=(RESAMPLES, len(array)))
    low, high = np.quantile(array[draws].mean(axis=1), (LEVEL / 2, 1 - LEVEL / 2))
    return float(low), float(high)
