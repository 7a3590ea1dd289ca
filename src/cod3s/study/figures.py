"""Figures of ratings: the plausibility of a set of answers, and how far raters agree.

The figures of a set are those of the paper's table 4: the score of the likeliest answer, the mean and the maximum
of the three likeliest, and, of ten, the maximum and the mean of the three best. The maximum of noisy means is too
high, and more so for larger sets; `held out` figures choose with all ratings but one, and score with that one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cod3s.errors import require
from cod3s.metrics.significance import LEVEL, RESAMPLES

Counts = npt.NDArray[np.int64]  # (items, scores): how often each item got each score
Matrix = npt.NDArray[np.float64]

SMALL, LARGE = 3, 10  # the paper's set sizes
HELD_OUT = "_held_out"
_LABELS = {
    "top1": "top 1",
    "top3": "mean of top {small}",
    "max3": "max of top {small}",
    "max10": "max of {large}",
    "best3of10": "mean of best {small} of {large}",
    f"max3{HELD_OUT}": "max of top {small}, held out",
    f"max10{HELD_OUT}": "max of {large}, held out",
    f"best3of10{HELD_OUT}": "mean of best {small} of {large}, held out",
}
FIGURES = tuple(_LABELS)

NO_PAIR = "undefined: no item was rated by two raters"
NO_VARIATION = "undefined: all raters gave the same score to everything, which says nothing about agreement"


@dataclass(frozen=True)
class RatedAnswer:
    """One answer: its rank by likelihood from 1, None if unknown, and the scores of its raters."""

    rank: int | None
    scores: tuple[int, ...]

    @property
    def mean(self) -> float:
        return sum(self.scores) / len(self.scores)


@dataclass(frozen=True)
class Agreement:
    """Krippendorff's alpha for ordered scores with its interval; if it is undefined, `words` says why.

    1 is perfect agreement, 0 is chance, below 0 is systematic disagreement.
    """

    alpha: float | None
    low: float | None
    high: float | None
    items: int  # with at least two ratings: the others say nothing about agreement
    ratings: int  # of these items
    words: str = ""


def figure_labels(most_answers: int) -> dict[str, str]:
    """Every figure with the label that people read, for sets of at most this many rated answers."""
    small, large = min(SMALL, most_answers), min(LARGE, most_answers)
    return {name: label.format(small=small, large=large) for name, label in _LABELS.items()}


def set_figures(answers: Sequence[RatedAnswer]) -> dict[str, float]:
    """The figures that the set has.

    | set | figures |
    |---|---|
    | an answer among the first n without a rating | none of the first n: the missing one might be the best |
    | three answers or fewer | none of ten |
    | fewer than n answers | those that exist count as the first n |
    | no answer of rank 1 | no top 1 |
    | answers without ranks | no top 1; the first three only if there are no more than three |
    | an answer with a single rating | nothing held out |
    """
    figures = {}
    top, small, large = (_first(answers, number) for number in (1, SMALL, LARGE))
    if top:
        figures["top1"] = top[0].mean
    if small:
        figures["top3"] = float(np.mean([answer.mean for answer in small]))
        figures |= _best("max3", small, 1)
    if len(large) > SMALL:
        figures |= _best("max10", large, 1)
        figures |= _best("best3of10", large, SMALL)
    return figures


def _first(answers: Sequence[RatedAnswer], number: int) -> list[RatedAnswer]:
    """The answers of the first `number` ranks, if all are rated; without ranks, all if there are no more."""
    if any(answer.rank is None for answer in answers):
        first = list(answers) if 1 < number >= len(answers) else []
    else:
        first = [answer for answer in answers if answer.rank is not None and answer.rank <= number]
    return first if all(answer.scores for answer in first) else []


def _best(name: str, answers: Sequence[RatedAnswer], number: int) -> dict[str, float]:
    """The mean of the best `number` answers, also held out unless an answer has only one rating."""
    figures = {name: float(np.mean(sorted((answer.mean for answer in answers), reverse=True)[:number]))}
    fewest = min(len(answer.scores) for answer in answers)
    if fewest > 1:
        folds = [_held_out(answers, number, fold) for fold in range(fewest)]
        figures[name + HELD_OUT] = float(np.mean(folds))
    return figures


def _held_out(answers: Sequence[RatedAnswer], number: int, fold: int) -> float:
    """The ratings of one fold of the answers that the others find best; ties at the border share what is left."""
    others = [(sum(answer.scores) - answer.scores[fold]) / (len(answer.scores) - 1) for answer in answers]
    number = min(number, len(answers))
    border = sorted(others, reverse=True)[number - 1]
    above = [answer.scores[fold] for answer, mean in zip(answers, others, strict=True) if mean > border]
    level = [answer.scores[fold] for answer, mean in zip(answers, others, strict=True) if mean == border]
    return (sum(above) + float(np.mean(level)) * (number - len(above))) / number


def agreement(counts: Counts, *, seed: int, resamples: int = RESAMPLES) -> Agreement:
    """Ordinal alpha with a bootstrap interval over items."""
    paired = counts[counts.sum(axis=1) > 1]
    items, ratings = len(paired), int(paired.sum())
    if not items:
        return Agreement(None, None, None, 0, 0, NO_PAIR)
    if np.count_nonzero(paired.sum(axis=0)) == 1:
        return Agreement(None, None, None, items, ratings, NO_VARIATION)
    library = require("krippendorff", "study")
    alpha = float(library.alpha(value_counts=paired, level_of_measurement="ordinal"))
    low, high = _interval(paired, seed=seed, resamples=resamples)
    return Agreement(alpha, low, high, items, ratings)


def coincidences(counts: Counts) -> Matrix:
    """The contribution of each item to the matrix of coincidences: (items, scores, scores)."""
    diagonals = counts[:, :, None] * np.eye(counts.shape[1])
    pairs = counts[:, :, None] * counts[:, None, :] - diagonals
    shares: Matrix = pairs / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]
    return shares


def ordinal_alpha(observed: Matrix) -> Matrix:
    """Alpha of each matrix of coincidences, (…, scores, scores); NaN if only one score occurs.

    The library needs the counts of all items for each resample: 50 ms for two thousand items. The coincidences of
    a resample are a sum over its items, which takes microseconds.
    """
    totals = observed.sum(axis=-1)  # (…, scores)
    number = totals.sum(axis=-1)[..., None, None]
    chance = totals[..., :, None] * totals[..., None, :]
    chance = (chance - totals[..., :, None] * np.eye(totals.shape[-1])) / (number - 1)
    # The distance of two scores: the ratings between them, with half of those on either score.
    middles = np.cumsum(totals, axis=-1) - totals / 2
    distances = (middles[..., :, None] - middles[..., None, :]) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        alphas: Matrix = 1 - (observed * distances).sum(axis=(-2, -1)) / (chance * distances).sum(axis=(-2, -1))
    return alphas


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
