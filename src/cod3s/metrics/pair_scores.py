"""Judge pairs without human raters: combine the scores of a pair, and see which alternatives they prefer."""

from collections.abc import Mapping, Sequence

import numpy as np

_MMI_WEIGHT = 0.3  # the λy of the paper (section 4)

SCORERS: dict[str, dict[str, float]] = {
    "relevance": {"relevance": 1},
    "forward": {"forward": 1},  # favors targets that are likely anyway
    "pmi": {"forward": 1, "target_alone": -1},
    "backward": {"backward": 1},  # the part of the paper's MMI that sees the source
    "backward_pmi": {"backward": 1, "source_alone": -1},  # comparable across sources
    "mmi": {"forward": 1, "backward": _MMI_WEIGHT},  # what the paper ranks sentences by
    "critic": {"critic": 1},
}
"""The ways to score a pair: the weight of each part of its scores."""


def combine(scores: Mapping[str, float], scorer: str) -> float | None:
    """One number for a pair from the parts of its scores; None if a part is missing."""
    weights = SCORERS[scorer]
    if not weights.keys() <= scores.keys():
        return None
    return sum(weight * scores[part] for part, weight in weights.items())


def all_known(scores: Sequence[float | None]) -> list[float]:
    """The scores, or none of them if one is missing."""
    known = [score for score in scores if score is not None]
    return known if len(known) == len(scores) else []


def choice_credits(alternatives: Sequence[Sequence[float]], answers: Sequence[int]) -> list[float]:
    """1 for each question whose right alternative scores highest, else 0; ties share the credit."""
    credits = []
    for scores, answer in zip(alternatives, answers, strict=True):
        best = [number for number, score in enumerate(scores) if score == max(scores)]
        credits.append(1.0 / len(best) if answer in best else 0.0)
    return credits


def plausibility_bar(wrong: Sequence[float | None]) -> float | None:
    """The median score of wrong alternatives: a score above it is better than a typical wrong answer.

    None if there are none, or if one could not be scored.
    """
    scores = all_known(wrong)
    return float(np.median(scores)) if scores else None
