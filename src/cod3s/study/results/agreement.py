"""How far raters agree: Krippendorff's alpha for ordered scores, with a bootstrap interval over items."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.errors import require
from cod3s.metrics.significance import LEVEL, RESAMPLES

Counts = npt.NDArray[np.int64]  # (items, scores): how often each item got each score
Matrix = npt.NDArray[np.float64]

NO_PAIR = "undefined: no item was rated by two raters"
NO_VARIATION = "undefined: all raters gave the same score to everything, which says nothing about agreement"


@dataclass(frozen=True)
class Agreement:
    """Alpha with its interval; if `alpha` is None, `words` says why it is undefined."""

    alpha: float | None
    low: float | None
    high: float | None
    items: int  # with at least two ratings: the others say nothing about agreement
    ratings: int  # of these items
    words: str = ""


def agreement(counts: Counts, *, seed: int, resamples: int = RESAMPLES) -> Agreement:
    """Ordinal alpha: 1 is perfect agreement, 0 is chance, below 0 is systematic disagreement."""
    paired = counts[counts.sum(axis=1) > 1]
    items, ratings = len(paired), int(paired.sum())
    if not items:
        return Agreement(None, None, None, 0, 0, NO_PAIR)
    if np.count_nonzero(paired.sum(axis=0)) == 1:
        return Agreement(None, None, None, items, ratings, NO_VARIATION)
    library = require("krippendorff", "judge")
    alpha = float(library.alpha(value_counts=paired, level_of_measurement="ordinal"))
    low, high = _interval(paired, seed=seed, resamples=resamples)
    return Agreement(alpha, low, high, items, ratings)


def coincidences(counts: Counts) -> Matrix:
    """The contribution of each item to the matrix of coincidences: (items, scores, scores)."""
    sizes = counts.sum(axis=1)
    diagonals = counts[:, :, None] * np.eye(counts.shape[1])
    pairs = counts[:, :, None] * counts[:, None, :] - diagonals
    shares: Matrix = pairs / np.maximum(sizes - 1, 1)[:, None, None]
    return shares


def ordinal_alpha(observed: Matrix) -> Matrix:
    """Alpha of each matrix of coincidences, (…, scores, scores); NaN if only one score occurs.

    The library needs the counts of all items for each resample: 50 ms for two thousand items. The coincidences of
    a resample are a sum over its items, which takes microseconds.
    """
    totals = observed.sum(axis=-1)  # (…, scores)
    number = totals.sum(axis=-1)[..., None, None]
    expected = totals[..., :, None] * totals[..., None, :]
    expected = (expected - totals[..., :, None] * np.eye(totals.shape[-1])) / (number - 1)
    distances = ordinal_distances(totals)
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas: Matrix = 1 - (observed * distances).sum(axis=(-2, -1)) / (expected * distances).sum(axis=(-2, -1))
    return alphas


def ordinal_distances(totals: Matrix) -> Matrix:
    """Squared distance of two scores: the ratings between them, with half of those on either score."""
    middles = np.cumsum(totals, axis=-1) - totals / 2
    squares: Matrix = (middles[..., :, None] - middles[..., None, :]) ** 2
    return squares


def _interval(paired: Counts, *, seed: int, resamples: int) -> tuple[float | None, float | None]:
    """Items with equal counts are drawn together: four raters and six scores give 126 kinds of items."""
    kinds, sizes = np.unique(paired, axis=0, return_counts=True)
    scores = kinds.shape[1]
    drawn = np.random.default_rng(seed).multinomial(len(paired), sizes / len(paired), size=resamples)
    summed = drawn.astype(np.float64) @ coincidences(kinds).reshape(len(kinds), -1)
    alphas = ordinal_alpha(summed.reshape(resamples, scores, scores))
    alphas = alphas[np.isfinite(alphas)]  # a resample with a single score has no alpha
    if not len(alphas):
        return None, None
    low, high = np.quantile(alphas, (LEVEL / 2, 1 - LEVEL / 2))
    return float(low), float(high)
