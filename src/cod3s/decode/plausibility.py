"""Judge how plausible a target is as an answer to a source: scores of the models, and a critic that weighs them.

The critic is a logistic model over a few features of a pair; `cod3s.critic` fits it. If the language model of the
bundle was refined to judge answers, one feature is its verdict: how likely it is to write `yes` after the pair.
p(text) alone is what the plain role gives when it reads nothing, as models learn from pairs with a hidden source.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cod3s.bundle import BundleFacts
from cod3s.decode.known_answers import Recalled
from cod3s.decode.models import BundleModels
from cod3s.decode.pair_likelihoods import BundleLikelihoods, Pair, PairScores
from cod3s.encode import Vectors
from cod3s.errors import BundleError, UsageError
from cod3s.io.disk import read_json, write_json
from cod3s.logistic import Numbers, logistic
from cod3s.signatures.signer import Signer
from cod3s.text import content_stems, words

NAME = "critic.json"
PLAUSIBLE = 0.5
"""The probability from which an answer counts as plausible."""
_LIKELIHOODS = ("forward", "target_alone", "backward", "source_alone", "signed")
"""The parts that are not computed for known answers: how similar their source is says more, at no cost."""
_RECALLED = 64
"""Sources whose known answers are kept for a while: writing asks for them first, and judging again."""


@dataclass(frozen=True)
class Feature:
    """What the critic weighs: a number of a pair, and the parts of its scores that it is made from."""

    value: Callable[[Pair, PairScores], float]
    parts: tuple[str, ...] = ()


def _score(name: str, part: str = "") -> Feature:
    """A score as it is, or 0 if it is missing; `part` is computed for it, if that has another name."""
    return Feature(lambda _, scores: getattr(scores, name) or 0.0, (part or name,))


def _gain(in_context: str, alone: str, length: str = "") -> Feature:
    """How much likelier, in nats, the other side makes a text: per token, or as a whole with its `length`."""

    def value(_: Pair, scores: PairScores) -> float:
        gain: float = (getattr(scores, in_context) or 0.0) - (getattr(scores, alone) or 0.0)
        return gain * getattr(scores, length) if length else gain

    return Feature(value, (in_context, alone))


FEATURES = {
    # What the bundle's language model says, if it was refined to judge pairs
    "verdict": _score("verdict"),
    # Whether it is a known answer to a similar source, and how similar that is
    "is_known": Feature(lambda _, scores: float(bool(scores.known)), ("known",)),
    "known": _score("known"),
    "known_overlap": _score("known_overlap", "known"),
    "known_relevance": _score("known_relevance", "known"),
    # How similar it is to known answers to other similar sources
    "support": _score("support"),
    # How much likelier the source makes the target
    "pmi": _gain("signed", "target_alone", "target_length"),
    "pmi_per_token": _gain("signed", "target_alone"),
    # The same without the signature, which costs another pass
    "plain_pmi": _gain("forward", "target_alone", "target_length"),
    "plain_pmi_per_token": _gain("forward", "target_alone"),
    "backward_pmi": _gain("backward", "source_alone", "source_length"),
    # How ordinary the target is
    "target_alone": _score("target_alone"),
    # What an encoder and word counts say
    "association": _score("association"),
    "relevance": Feature(lambda _, scores: scores.relevance),
    "words": Feature(lambda pair, _: float(len(words(pair.target)))),
    "overlap": Feature(lambda pair, _: _overlap(pair)),
    "is_cause": Feature(lambda pair, _: float(pair.relation == "cause")),
}
GLANCED = ("known", "known_overlap", "support", "relevance", "known_relevance")
"""The features of a known answer that cost nothing, because no model has to read it."""


def _overlap(pair: Pair) -> float:
    """The share of the target's content words that the source has."""
    target = set(content_stems(pair.target))
    return len(target & set(content_stems(pair.source))) / max(1, len(target))


@dataclass(frozen=True)
class Critic:
    """A logistic model: the log-odds that a pair is plausible are `bias` plus the weighted features."""

    weights: Mapping[str, float]
    bias: float
    floor: float  # answers below this probability are not worth showing
    encoder: str  # id of the encoder that the relevance was measured with
    facts: Mapping[str, Any] = field(default_factory=dict)  # what it was fitted on, and how well it does
    # For known answers, if the critic can judge them without asking the language model
    glance: Mapping[str, float] = field(default_factory=dict)  # weights of GLANCED
    glance_bias: float = 0.0
    # For sentences that are written beside known answers: the best of many, they seem better than they are
    written_floor: float = 0.0
    # For pairs that somebody gives to be judged, if there is time for every score
    thorough: Mapping[str, float] = field(default_factory=dict)
    thorough_bias: float = 0.0
    # For the alternatives of a question, of which one is right, whether or not the others could follow
    choosing: Mapping[str, float] = field(default_factory=dict)
    choosing_bias: float = 0.0

    @property
    def parts(self) -> tuple[str, ...]:
        """The scores of a pair that its features need."""
        return tuple(dict.fromkeys(part for name in self.weights for part in FEATURES[name].parts))

    def weigh(self, features: Numbers) -> Numbers:
        """How plausible pairs with these features are, from 0 to 1."""
        return logistic(features @ [*self.weights.values()] + self.bias)


def feature_rows(
    names: Sequence[str] | Mapping[str, float], pairs: Sequence[Pair], scores: Sequence[PairScores]
) -> Numbers:
    """The named features of each pair: (pairs, features)."""
    rows = [
        [FEATURES[name].value(pair, score) for name in names] for pair, score in zip(pairs, scores, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(len(pairs), len(names))


def save_critic(folder: Path, critic: Critic) -> None:
    """Write the critic into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / NAME, {"format": 1, **asdict(critic)})


def load_critic(folder: Path) -> Critic:
    """The critic in a folder; an error names what is wrong with its file."""
    if not (folder / NAME).is_file():
        raise BundleError(f"{folder} holds no critic: it has no {NAME}", hint="make it with `cod3s critic train`")
    content = read_json(folder / NAME)
    try:
        content.pop("format")
        critic = Critic(**content)
        floors = (critic.floor, critic.written_floor)
        weights = [critic.weights, critic.glance, critic.thorough, critic.choosing]
        biases = [critic.bias, critic.glance_bias, critic.thorough_bias, critic.choosing_bias]
        numbers = [*(weight for named in weights for weight in named.values()), *biases, *floors]
        are_finite = np.isfinite(np.array(numbers, dtype=np.float64)).all()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BundleError(f"{folder / NAME} does not describe a critic", hint="fit it again") from error
    if unknown := sorted({*critic.weights, *critic.thorough, *critic.choosing} - set(FEATURES)):
        raise BundleError(
            f"{folder / NAME} weighs the unknown feature {unknown[0]!r}", hint="upgrade cod3s, or fit it again"
        )
    if critic.glance and {*critic.glance} != {*GLANCED}:
        raise BundleError(f"{folder / NAME} does not say how to glance at known answers", hint="fit it again")
    if not are_finite:
        raise BundleError(f"{folder / NAME} has a weight that is not a number", hint="fit it again")
    return critic


class Judge:
    """A critic together with the models and the signer that its features come from."""

    def __init__(
        self,
        critic: Critic,
        models: BundleModels,
        signer: Signer,
        *,
        leave_out: bool = False,
        likelihoods: bool = False,
    ) -> None:
        """`leave_out` judges pairs as if their own sources were not among the known ones.

        `likelihoods` are computed for known answers, too.
        """
        if "verdict" in critic.weights and not models.facts.judges:
            raise BundleError(
                f"the critic asks {models.label} for its verdict, which it has not learned to give",
                hint="refine it with verdicts, or fit the critic again",
            )
        if {"known", "support"} & {*critic.parts} and not models.known:
            raise BundleError(
                f"the critic asks {models.label} for known answers, which it does not have",
                hint="add them with `cod3s remember`, or fit the critic again",
            )
        if "association" in critic.parts and not models.facts.associations:
            raise BundleError(
                f"the critic asks {models.label} what goes with what, which it has not learned",
                hint="let it learn with `cod3s associate`, or fit the critic again",
            )
        self.critic = critic
        self.signer = signer
        self._models, self._known = models, models.known
        self._leave_out, self._skipped = leave_out, () if likelihoods else _LIKELIHOODS
        self._recalled = lru_cache(_RECALLED)(self._recall)

    @cached_property
    def thorough(self) -> "Judge":
        """Judges pairs that somebody gives, with every score that its critic can weigh."""
        return self._with_weights(self.critic.thorough, self.critic.thorough_bias)

    @cached_property
    def choosing(self) -> "Judge":
        """Judges the alternatives of questions in the same way."""
        critic = self.critic
        return self._with_weights(critic.choosing, critic.choosing_bias) if critic.choosing else self.thorough

    def _with_weights(self, weights: Mapping[str, float], bias: float) -> "Judge":
        """A judge that computes every likelihood, with other weights if the critic has them."""
        critic = replace(self.critic, weights=weights, bias=bias) if weights else self.critic
        return Judge(critic, self._models, self.signer, leave_out=self._leave_out, likelihoods=True)

    def __call__(self, pairs: Sequence[Pair]) -> Numbers:
        """How plausible each pair is; equal pairs are scored once."""
        distinct = list(dict.fromkeys(pairs))
        probabilities = dict(zip(distinct, self.critic.weigh(self.features(distinct)), strict=True))
        return np.array([probabilities[pair] for pair in pairs])

    def judge_written(
        self, pairs: Sequence[Pair], signed: Sequence[float | None], vectors: Mapping[str, Vectors]
    ) -> Numbers:
        """The same for targets that were just written, with the scores that they have in their bins."""
        return self.judge_scored(pairs, [PairScores(0.0, signed=value) for value in signed], vectors)

    def judge_scored(
        self, pairs: Sequence[Pair], scores: Sequence[PairScores], vectors: Mapping[str, Vectors]
    ) -> Numbers:
        """The same with scores and vectors that are known already: only parts that are missing are computed."""
        return self.critic.weigh(self._features(pairs, scores, vectors))

    def features(self, pairs: Sequence[Pair]) -> Numbers:
        """The critic's features of each pair: (pairs, features)."""
        vectors = self.vectors(text for pair in pairs for text in (pair.source, pair.target))
        return self._features(pairs, [PairScores(0.0)] * len(pairs), vectors)

    def _features(
        self, pairs: Sequence[Pair], scores: Sequence[PairScores], vectors: Mapping[str, Vectors]
    ) -> Numbers:
        scores = self._with_associations(pairs, self._with_known(pairs, scores, vectors), vectors)
        rows_by_missing: dict[tuple[str, ...], list[int]] = {}
        for row, score in enumerate(scores):
            parts = [part for part in self.critic.parts if not score.known or part not in self._skipped]
            missing = tuple(part for part in parts if getattr(score, part) is None)
            rows_by_missing.setdefault(missing, []).append(row)
        complete, likelihoods = list(scores), BundleLikelihoods(self._models)
        for missing, rows in rows_by_missing.items():
            unscored = [pairs[row] for row in rows]
            signatures = self._signatures(unscored, vectors) if "signed" in missing else {}
            for row, score in zip(rows, likelihoods.score_pairs(unscored, missing, signatures), strict=True):
                complete[row] = replace(
                    scores[row],
                    relevance=float(vectors[pairs[row].source] @ vectors[pairs[row].target]),
                    target_length=score.target_length,
                    source_length=score.source_length,
                    **{part: getattr(score, part) for part in missing},
                )
        return feature_rows(self.critic.weights, pairs, complete)

    def recall(self, source: str, relation: str, most: int) -> Recalled:
        """The `most` plausible known answers to similar sources, judged at a glance.

        A critic that was not fitted to glance orders them by its other weights, and finds none of them plausible.
        """
        recalled, critic = self._recalled(source, relation), self.critic
        weights = [(critic.glance or critic.weights).get(name, 0.0) for name in GLANCED]
        log_odds = _glanced(recalled) @ weights + critic.glance_bias
        best = np.argsort(-log_odds, kind="stable")[:most]
        plausible = logistic(log_odds[best]) if critic.glance else np.zeros(len(best))
        answers = [recalled.answers[row] for row in best.tolist()]
        return Recalled(answers, recalled.vectors[best], plausible.tolist())

    def _recall(self, source: str, relation: str) -> Recalled:
        """Known answers to similar sources, if the bundle has any."""
        if not self._known:
            return Recalled([], np.zeros((0, self.signer.encoder.dim), np.float32))
        return self._known.recall(source, relation, self.signer, leave_out=self._leave_out)

    def _with_known(
        self, pairs: Sequence[Pair], scores: Sequence[PairScores], vectors: Mapping[str, Vectors]
    ) -> Sequence[PairScores]:
        """The scores with what known answers to similar sources say; known answers need no likelihoods."""
        if not {"known", "support"} & {*self.critic.parts}:
            return scores
        unscored: dict[str, Any] = dict.fromkeys(self._skipped)
        rows: list[PairScores] = []
        for pair, score in zip(pairs, scores, strict=True):
            recalled = self._recalled(pair.source, pair.relation)
            support = recalled.support(pair.target, vectors[pair.target])
            if answer := recalled.find(pair.target):
                row = replace(
                    score,
                    known=answer.similarity,
                    known_overlap=answer.overlap,
                    known_relevance=answer.known_relevance,
                    **unscored,
                )
            else:
                row = replace(score, known=0.0)
            rows.append(replace(row, support=support))
        return rows

    def _with_associations(
        self, pairs: Sequence[Pair], scores: Sequence[PairScores], vectors: Mapping[str, Vectors]
    ) -> Sequence[PairScores]:
        """The scores with what vectors say about the two sides."""
        if "association" not in self.critic.parts:
            return scores
        rows = list(scores)
        for relation in dict.fromkeys(pair.relation for pair in pairs):
            chosen = [row for row, pair in enumerate(pairs) if pair.relation == relation]
            if score := self._models.association(relation):
                sources = np.array([vectors[pairs[row].source] for row in chosen])
                targets = np.array([vectors[pairs[row].target] for row in chosen])
                for row, value in zip(chosen, score(sources, targets).tolist(), strict=True):
                    rows[row] = replace(rows[row], association=value)
        return rows

    def _signatures(self, pairs: Sequence[Pair], vectors: Mapping[str, Vectors]) -> dict[str, str]:
        targets = list(dict.fromkeys(pair.target for pair in pairs))
        return dict(zip(targets, self.signer.signatures_of(np.array([*map(vectors.get, targets)])), strict=True))

    def vectors(self, texts: Iterable[str]) -> dict[str, Vectors]:
        """The vector of each text."""
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self.signer.vectors(distinct), strict=True))


def _glanced(recalled: Recalled) -> Numbers:
    """The features GLANCED of each answer: (answers, features)."""
    rows = [
        (answer.similarity, answer.overlap, support, answer.relevance, answer.known_relevance)
        for answer, support in zip(recalled.answers, recalled.supports, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(GLANCED))


def open_judge(folder: Path, facts: BundleFacts, models: BundleModels, signer: Signer) -> Judge:
    """The judge of a bundle that carries a critic."""
    if not facts.critic:
        raise UsageError(
            f"the bundle {facts.name} has no critic",
            hint="fit a critic with `cod3s critic train`, and add it with `cod3s critic attach`",
        )
    return Judge(load_critic(folder / facts.critic), models, signer)
