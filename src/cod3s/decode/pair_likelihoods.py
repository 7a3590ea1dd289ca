"""Score how likely the models of a bundle find a target, given its source and by itself, and its verdict on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cod3s.decode.models import BundleModels, RoleModel
from cod3s.decode.rerank import score_texts
from cod3s.text import for_modelling

_JUDGED_TOKENS = 60
"""How much of a target the language model reads before its verdict: with the source, no more fits."""


@dataclass(frozen=True, order=True)
class Pair:
    """A source and a target that may answer it."""

    relation: str
    source: str
    target: str


@dataclass(frozen=True)
class PairScores:
    """What models and vectors say about a pair of a source and a target; None where a model is missing.

    Likelihoods are mean log-probabilities per token; the lengths count the tokens and the end.
    """

    relevance: float  # the cosine of the two
    forward: float | None = None  # p(target | source)
    target_alone: float | None = None  # p(target | nothing)
    backward: float | None = None  # p(source | target)
    source_alone: float | None = None  # p(source | nothing)
    target_length: int = 0
    source_length: int = 0
    signed: float | None = None  # p(target | source, signature of the target)
    verdict: float | None = None  # the log-odds that the language model calls the pair plausible
    known: float | None = None  # how similar the source is to one that the target is a known answer to
    known_overlap: float | None = None  # of the content words of these sources, the share in the same order
    known_relevance: float | None = None  # the cosine of the target to that source
    support: float | None = None  # how similar the target is to known answers to other sources
    association: float | None = None  # how well the vectors of the two go together
    critic: float | None = None  # how plausible a critic finds the pair, from 0 to 1


class BundleLikelihoods:
    """Scores pairs with the plain roles of a relation and of its inverse; leaves the relevance at 0."""

    def __init__(self, models: BundleModels) -> None:
        self._models = models

    def score_pairs(
        self,
        pairs: Sequence[Pair],
        parts: Sequence[str] = ("forward", "target_alone", "backward", "source_alone"),
        signatures: Mapping[str, str] | None = None,
    ) -> list[PairScores]:
        """Scores in the order of `pairs`; a part that is not asked for or has no model is None.

        The part `signed` needs the `signatures` of all targets.
        """
        scores: dict[Pair, PairScores] = {}
        for relation in dict.fromkeys(pair.relation for pair in pairs):
            related = [pair for pair in pairs if pair.relation == relation]
            rows = self._score_relation(relation, related, parts, signatures or {})
            scores |= dict(zip(related, rows, strict=True))
        return [scores[pair] for pair in pairs]

    def _score_relation(
        self, relation: str, pairs: Sequence[Pair], parts: Sequence[str], signatures: Mapping[str, str]
    ) -> list[PairScores]:
        if relation not in self._models.facts.models:
            return [PairScores(0.0)] * len(pairs)
        sources = [for_modelling(pair.source) for pair in pairs]
        targets = [for_modelling(pair.target) for pair in pairs]
        nothing: list[None] = [None] * len(pairs)
        forward, backward = self._models.plain(relation), self._models.backward(relation)
        likelihoods: dict[str, tuple[RoleModel | None, Sequence[str | None], Sequence[str]]] = {
            "forward": (forward, sources, targets),
            "target_alone": (forward, nothing, targets),
            "backward": (backward, targets, sources),
            "source_alone": (backward, nothing, sources),
        }
        columns: dict[str, Sequence[float | None]] = {}
        for part, (model, read, written) in likelihoods.items():
            if part in parts:
                columns[part] = score_texts(model, read, written) if model else nothing
        if "signed" in parts:
            encode = self._models.vocabulary.encode_signature
            prefixes = [tuple(encode(signatures[pair.target])) for pair in pairs]
            columns["signed"] = score_texts(self._models.sentence(relation), sources, targets, prefixes)
        if "verdict" in parts:
            columns["verdict"] = self._verdicts(forward, sources, targets)
        lengths = {text: len(self._models.vocabulary.encode_text(text)) + 1 for text in {*sources, *targets}}
        return [
            PairScores(
                0.0,
                **{part: column[row] for part, column in columns.items()},
                target_length=lengths[targets[row]],
                source_length=lengths[sources[row]],
            )
            for row in range(len(pairs))
        ]

    def _verdicts(self, forward: RoleModel, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """How plausible the language model calls each pair: the log-odds of `yes` after it."""
        words = self._models.vocabulary
        yes, _ = words.verdicts
        pairs = [
            forward.request(source, (*words.encode_text(target)[:_JUDGED_TOKENS], words.end))
            for source, target in zip(sources, targets, strict=True)
        ]
        scores = forward.engine.score(pairs, [(yes,)] * len(pairs), end=False)
        shares = np.clip(np.exp([hypothesis.log_prob for hypothesis in scores]), 1e-6, 1 - 1e-6)
        log_odds: list[float] = np.log(shares / (1 - shares)).tolist()
        return log_odds
