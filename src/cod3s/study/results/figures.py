"""The figures of a set of rated answers: a system's answers to a source with their ratings.

They are those of the paper's table 4: the score of the likeliest answer, the mean and the maximum of the three
likeliest, and, of ten, the maximum and the mean of the three best. The maximum of noisy means is too high, and
more so for larger sets; `held out` figures choose with all ratings but one, and score with that one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SMALL, LARGE = 3, 10  # the paper's set sizes
HELD_OUT = "_held_out"


@dataclass(frozen=True)
class RatedAnswer:
    """One answer: its rank by likelihood from 1, None if unknown, and the scores of its raters."""

    rank: int | None
    scores: tuple[int, ...]

    @property
    def mean(self) -> float:
        return sum(self.scores) / len(self.scores)


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
    small, large = first(answers, SMALL), first(answers, LARGE)
    if (top := first(answers, 1)) and _complete(top):
        figures["top1"] = top[0].mean
    if _complete(small):
        figures["top3"] = float(np.mean([answer.mean for answer in small]))
        figures |= _with_held_out("max3", small, 1)
    if len(large) > SMALL and _complete(large):
        figures |= _with_held_out("max10", large, 1)
        figures |= _with_held_out("best3of10", large, SMALL)
    return figures


def first(answers: Sequence[RatedAnswer], number: int) -> list[RatedAnswer]:
    """The answers of the first `number` ranks; without ranks, all if there are no more than that, else none."""
    if any(answer.rank is None for answer in answers):
        return list(answers) if 1 < number >= len(answers) else []
    return [answer for answer in answers if answer.rank is not None and answer.rank <= number]


def best_mean(means: Sequence[float], number: int) -> float:
    """The mean of the `number` highest."""
    return float(np.mean(sorted(means, reverse=True)[:number]))


def held_out_mean(answers: Sequence[RatedAnswer], number: int) -> float | None:
    """As `best_mean`, but each rating in turn scores what the others chose; None if an answer has only one."""
    fewest = min(len(answer.scores) for answer in answers)
    if fewest < 2:
        return None
    folds = [
        _chosen_mean([(_without(answer.scores, fold), answer.scores[fold]) for answer in answers], number)
        for fold in range(fewest)
    ]
    return float(np.mean(folds))


def _chosen_mean(pairs: Sequence[tuple[float, int]], number: int) -> float:
    """The mean of the second numbers where the first are highest; ties at the border share what is left."""
    number = min(number, len(pairs))
    border = sorted((by for by, _ in pairs), reverse=True)[number - 1]
    above = [score for by, score in pairs if by > border]
    level = [score for by, score in pairs if by == border]
    return (sum(above) + float(np.mean(level)) * (number - len(above))) / number


def _with_held_out(name: str, answers: Sequence[RatedAnswer], number: int) -> dict[str, float]:
    figures = {name: best_mean([answer.mean for answer in answers], number)}
    held_out = held_out_mean(answers, number)
    return figures if held_out is None else {**figures, name + HELD_OUT: held_out}


def _complete(answers: Sequence[RatedAnswer]) -> bool:
    return bool(answers) and all(answer.scores for answer in answers)


def _without(scores: tuple[int, ...], fold: int) -> float:
    return (sum(scores) - scores[fold]) / (len(scores) - 1)
