"""Judge how plausible a target is as an answer to a source: a critic weighs a few features of the pair.

The critic is a logistic model; `cod3s.critic.fitting` fits it. The strongest feature is the verdict of the
bundle's language model: how likely it is to write `yes` after the pair, as it learned from good and wrong answers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.critic.features import FEATURES, feature_rows
from cod3s.critic.likelihoods import Pair, PairScores, score_pairs
from cod3s.encode import Vectors
from cod3s.errors import BundleError
from cod3s.io.disk import read_json, write_json
from cod3s.logistic import Numbers, logistic
from cod3s.models import BundleModels
from cod3s.signatures.signer import Signer

NAME = "critic.json"
PLAUSIBLE = 0.5
"""The probability from which an answer counts as plausible."""


@dataclass(frozen=True)
class Critic:
    """A logistic model: the log-odds that a pair is plausible are `bias` plus the weighted features."""

    weights: Mapping[str, float]
    bias: float
    floor: float  # answers below this probability are not worth showing
    encoder: str  # id of the encoder that the relevance was measured with
    facts: Mapping[str, Any] = field(default_factory=dict)  # what it was fitted on, and how well it does

    @property
    def parts(self) -> tuple[str, ...]:
        """The scores of a pair that its features need."""
        return tuple(dict.fromkeys(part for name in self.weights for part in FEATURES[name].parts))

    def judge(self, pairs: Sequence[Pair], scores: Sequence[PairScores]) -> Numbers:
        """How plausible each pair is, from 0 to 1, by its scores."""
        return logistic(feature_rows([*self.weights], pairs, scores) @ [*self.weights.values()] + self.bias)


def save_critic(folder: Path, critic: Critic) -> None:
    """Write the critic into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / NAME, {"format": 1, **asdict(critic)})


def load_critic(folder: Path) -> Critic:
    """The critic in a folder; an error names what is wrong with its file."""
    if not (folder / NAME).is_file():
        raise BundleError(
            f"{folder} holds no critic: it has no {NAME}", hint="make it with `cod3s bundle fit-critic`"
        )
    content = read_json(folder / NAME)
    try:
        content.pop("format")
        critic = Critic(**content)
        numbers = [*critic.weights.values(), critic.bias, critic.floor]
        are_finite = np.isfinite(np.array(numbers, dtype=np.float64)).all()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BundleError(f"{folder / NAME} does not describe a critic", hint="fit it again") from error
    if unknown := sorted({*critic.weights} - set(FEATURES)):
        raise BundleError(
            f"{folder / NAME} weighs the unknown feature {unknown[0]!r}", hint="upgrade cod3s, or fit it again"
        )
    if not are_finite:
        raise BundleError(f"{folder / NAME} has a weight that is not a number", hint="fit it again")
    return critic


class Judge:
    """A critic together with the models and the signer that its features come from."""

    def __init__(self, critic: Critic, models: BundleModels, signer: Signer) -> None:
        if {"verdict", "backward_verdict"} & {*critic.weights} and not models.facts.judges:
            raise BundleError(
                f"the critic asks {models.label} for its verdict, which it has not learned to give",
                hint="train the bundle's model with verdicts, or fit the critic again without this feature",
            )
        self.critic, self.signer, self._models = critic, signer, models

    def __call__(self, pairs: Sequence[Pair], vectors: Mapping[str, Vectors] | None = None) -> Numbers:
        """How plausible each pair is; equal pairs are scored once. `vectors` are those that are known already."""
        distinct = list(dict.fromkeys(pairs))
        probabilities = self.critic.judge(distinct, self.scores(distinct, vectors))
        by_pair = dict(zip(distinct, probabilities, strict=True))
        return np.array([by_pair[pair] for pair in pairs])

    def scores(self, pairs: Sequence[Pair], vectors: Mapping[str, Vectors] | None = None) -> list[PairScores]:
        """The scores of each pair that the critic weighs."""
        known = dict(vectors or {})
        known |= self.vectors({text for pair in pairs for text in (pair.source, pair.target)} - known.keys())
        return [
            replace(score, relevance=float(known[pair.source] @ known[pair.target]))
            for pair, score in zip(pairs, score_pairs(self._models, pairs, self.critic.parts), strict=True)
        ]

    def vectors(self, texts: Iterable[str]) -> dict[str, Vectors]:
        """The vector of each text."""
        distinct = sorted(set(texts))
        return dict(zip(distinct, self.signer.vectors(distinct), strict=True))


def open_judge(folder: Path, models: BundleModels, signer: Signer) -> Judge:
    """The judge of a bundle that carries a critic."""
    if not models.facts.critic:
        raise BundleError(
            f"the bundle {models.facts.name} has no critic", hint="fit one with `cod3s bundle fit-critic`"
        )
    return Judge(load_critic(folder / models.facts.critic), models, signer)
