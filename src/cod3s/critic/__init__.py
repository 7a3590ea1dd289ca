"""Fit a critic: how plausible is a target as an answer to a source?"""

from cod3s.critic.examples import LabelledPair, corpus_examples, question_examples, verdict_examples
from cod3s.critic.fitting import DEFAULT_FEATURES, Fit, Measured, fit_critic, measure

__all__ = [
    "DEFAULT_FEATURES",
    "Fit",
    "LabelledPair",
    "Measured",
    "corpus_examples",
    "fit_critic",
    "measure",
    "question_examples",
    "verdict_examples",
]
