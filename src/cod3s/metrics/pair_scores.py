"""Judge pairs without human raters: combine the scores of a pair, and see which alternatives they prefer.

The scores come from a model or an encoder (`cod3s.evaluate.judged_pairs`).
"""

from collections.abc import Sequence

import numpy as np

from cod3s.decode.decode_config import PAPER
from cod3s.decode.pair_likelihoods import PairScores

SCORERS = ("relevance", "forward", "pmi", "backward", "backward_pmi", "mmi", "critic")
"""The ways to score a pair: see `combine`."""

MMI_WEIGHT = PAPER.sentence_weight  # lambda_y


def combine(scores: PairScores, scorer: str) -> float | None:
    """One number for a pair; None if a part is missing.

    | scorer | meaning |
    |---|---|
    | relevance | cosine of source and target |
    | forward | log p(target given source): favours targets that are likely anyway |
    | pmi | forward - log p(target) |
    | backward | log p(source given target): the part of the paper's MMI that sees the source |
    | backward_pmi | backward - log p(source): comparable across sources |
    | mmi | forward + 0.3 backward, what the paper ranks sentences by |
    | critic | the probability that the bundle's critic computes from all of these |
    """
    parts = {
        "relevance": (scores.relevance, 0.0),
        "forward": (scores.forward, 0.0),
        "pmi": (scores.forward, _negative(scores.target_alone)),
        "critic": (scores.critic, 0.0),
        "backward": (scores.backward, 0.0),
        "backward_pmi": (scores.backward, _negative(scores.source_alone)),
        "mmi": (scores.forward, None if scores.backward is None else MMI_WEIGHT * scores.backward),
    }
    first, second = parts[scorer]
    return None if first is None or second is None else first + second


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
    scores = [score for score in wrong if score is not None]
    return float(np.median(scores)) if scores and len(scores) == len(wrong) else None


def _negative(score: float | None) -> float | None:
    return None if score is None else -score
