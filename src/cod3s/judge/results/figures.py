"""What one set of rated answers is worth: the ratings of a system's answers to one source in, figures out.

The paper's table 4: the score of the likeliest answer, the mean and the maximum of the three likeliest, and, of
ten, the maximum and the mean of the three best. A maximum of noisy means is too high, the more so the more
answers it is taken of; figures `held out` choose by all ratings but one and score by that one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SMALL, LARGE = 3, 10  # the paper's set sizes
HELD_OUT = "_held_out"


@dataclass(frozen=True)
class RatedAnswer:
    """One answer: its rank by likelihood from 1, None where nobody knows it, and its raters' scores."""

    rank: int | None
    scores: tuple[int, ...]

    @property
    def mean(self) -> float:
        return sum(self.scores) / len(self.scores)


FIGURES = {
    "top1": "top 1",
    "top3": "mean of top 3",
    "max3": "max of top 3",
    "max10": "max of 10",
    "best3of10": "mean of best 3 of 10",
    f"max3{HELD_OUT}": "max of top 3, held out",
    f"max10{HELD_OUT}": "max of 10, held out",
    f"best3of10{HELD_OUT}": "mean of best 3 of 10, held out",
}
"""Every figure with the name that people read."""


def set_figures(answers: Sequence[RatedAnswer]) -> dict[str, float]:
    """The figures that the set has.

    | set | figures |
    |---|---|
    | an answer among the first n without a rating | none of the first n: what is missing might be the best |
    | three answers or fewer | none of ten |
    | fewer than n answers | those that are there count as the first n |
    | no answer of rank 1 | no top 1 |
    | answers without ranks | no top 1; the first three only where there are no more than three |
    | an answer with one rating | nothing held out |
    """
    found = {}
    small, large = first(answers, SMALL), first(answers, LARGE)
    if (top := first(answers, 1)) and _complete(top):
        found["top1"] = top[0].mean
    if _complete(small):
        found["top3"] = float(np.mean([answer.mean for answer in small]))
        found |= _with_held_out("max3", small, 1)
    if len(large) > SMALL and _complete(large):
        found |= _with_held_out("max10", large, 1)
        found |= _with_held_out("best3of10", large, SMALL)
    return found


def first(answers: Sequence[RatedAnswer], number: int) -> list[RatedAnswer]:
    """The answers of the first so many ranks; without ranks, all where they are so few anyway, and else none."""
    if any(answer.rank is None for answer in answers):
        return list(answers) if 1 < number >= len(answers) else []
    return [answer for answer in answers if answer.rank is not None and answer.rank <= number]


def best_mean(means: Sequence[float], number: int) -> float:
    """The mean of the highest so many."""
    return float(np.mean(sorted(means, reverse=True)[:number]))


def held_out_mean(answers: Sequence[RatedAnswer], number: int) -> float | None:
    """As `best_mean`, but each rating in turn only scores what the others chose; None where one has no others."""
    fewest = min(len(answer.scores) for answer in answers)
    if fewest < 2:
        return None
    folds = [
        _chosen_mean([(_without(own.scores, place), own.scores[place]) for own in answers], number)
        for place in range(fewest)
    ]
    return float(np.mean(folds))


def _chosen_mean(pairs: Sequence[tuple[float, int]], number: int) -> float:
    """The mean of the second parts where the first are highest; equal ones at the border count in equal parts."""
    number = min(number, len(pairs))
    border = sorted((by for by, _ in pairs), reverse=True)[number - 1]
    above = [own for by, own in pairs if by > border]
    level = [own for by, own in pairs if by == border]
    return (sum(above) + float(np.mean(level)) * (number - len(above))) / number


def _with_held_out(name: str, answers: Sequence[RatedAnswer], number: int) -> dict[str, float]:
    found = {name: best_mean([answer.mean for answer in answers], number)}
    held_out = held_out_mean(answers, number)
    return found if held_out is None else {**found, name + HELD_OUT: held_out}


def _complete(answers: Sequence[RatedAnswer]) -> bool:
    return bool(answers) and all(answer.scores for answer in answers)


def _without(scores: tuple[int, ...], place: int) -> float:
    return (sum(scores) - scores[place]) / (len(scores) - 1)
