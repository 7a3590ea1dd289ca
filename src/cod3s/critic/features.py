"""The numbers of a pair that a critic may weigh."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cod3s.critic.likelihoods import Pair, PairScores
from cod3s.logistic import Numbers
from cod3s.text import content_stems, words


@dataclass(frozen=True)
class Feature:
    """What the critic weighs: a number of a pair, and the parts of its scores that it is made from."""

    value: Callable[[Pair, PairScores], float]
    parts: tuple[str, ...] = ()


def _score(name: str) -> Feature:
    """A score as it is, or 0 if it is missing."""
    return Feature(lambda _, scores: getattr(scores, name) or 0.0, (name,))


def _gain(in_context: str, alone: str, length: str = "") -> Feature:
    """How much likelier, in nats, the other side makes a text: per token, or as a whole with its `length`."""

    def value(_: Pair, scores: PairScores) -> float:
        gain: float = (getattr(scores, in_context) or 0.0) - (getattr(scores, alone) or 0.0)
        return gain * getattr(scores, length) if length else gain

    return Feature(value, (in_context, alone))


def _overlap(pair: Pair) -> float:
    """The share of the target's content words that the source has."""
    target = set(content_stems(pair.target))
    return len(target & set(content_stems(pair.source))) / max(1, len(target))


FEATURES = {
    # The language model's verdict on the target given the source, and the other way round
    "verdict": _score("verdict"),
    "backward_verdict": _score("backward_verdict"),
    # How much likelier one side makes the other
    "pmi": _gain("forward", "target_alone", "target_length"),
    "pmi_per_token": _gain("forward", "target_alone"),
    "backward_pmi": _gain("backward", "source_alone", "source_length"),
    # How likely and how ordinary the target is
    "forward": _score("forward"),
    "target_alone": _score("target_alone"),
    # What an encoder and word counts say
    "relevance": Feature(lambda _, scores: scores.relevance),
    "words": Feature(lambda pair, _: float(len(words(pair.target)))),
    "overlap": Feature(lambda pair, _: _overlap(pair)),
    "is_cause": Feature(lambda pair, _: float(pair.relation == "cause")),
}


def feature_rows(names: Sequence[str], pairs: Sequence[Pair], scores: Sequence[PairScores]) -> Numbers:
    """The named features of each pair: (pairs, features)."""
    rows = [
        [FEATURES[name].value(pair, score) for name in names] for pair, score in zip(pairs, scores, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(len(pairs), len(names))
