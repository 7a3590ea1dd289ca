"""How likely a bundle's models find a pair: forward, backward, and what either side is worth alone.

Pairs in, mean log-probabilities per token out. p(text) alone is what the plain role writes when it reads nothing:
no model here is trained for that, so docs/evaluation.md measures what it is good for.
"""

from collections.abc import Sequence

from cod3s.decode.models import BundleModels, RoleModel
from cod3s.decode.rerank import mean_log_prob
from cod3s.evaluate.plausible import Pair
from cod3s.metrics.plausibility import PairScores
from cod3s.text import for_modelling


class BundleLikelihoods:
    """Scores pairs with the plain roles of a relation and of its inverse."""

    def __init__(self, models: BundleModels) -> None:
        self._models = models

    def score_pairs(self, pairs: Sequence[Pair]) -> list[PairScores]:
        """In the order given; parts that the bundle has no model for are None."""
        found: dict[Pair, PairScores] = {}
        for relation in dict.fromkeys(pair.relation for pair in pairs):
            own = [pair for pair in pairs if pair.relation == relation]
            found |= dict(zip(own, self._score_relation(relation, own), strict=True))
        return [found[pair] for pair in pairs]

    def _score_relation(self, relation: str, pairs: Sequence[Pair]) -> list[PairScores]:
        if relation not in self._models.facts.models:
            return [PairScores(0.0)] * len(pairs)
        sources = [for_modelling(pair.source) for pair in pairs]
        targets = [for_modelling(pair.target) for pair in pairs]
        forward, backward = self._models.plain(relation), self._models.backward(relation)
        rows = zip(
            self._score(forward, sources, targets),
            self._score(forward, [None] * len(pairs), targets),
            self._score(backward, targets, sources),
            self._score(backward, [None] * len(pairs), sources),
            strict=True,
        )
        return [PairScores(0.0, *row) for row in rows]

    def _score(
        self, model: RoleModel | None, read: Sequence[str | None], written: Sequence[str]
    ) -> Sequence[float | None]:
        """Mean log-probabilities of what is written after what is read, each combination scored once."""
        if model is None:
            return [None] * len(written)
        distinct = list(dict.fromkeys(zip(read, written, strict=True)))
        scores = model.engine.score(
            [model.request(source) for source, _ in distinct],
            [self._models.vocabulary.encode_text(text) for _, text in distinct],
        )
        by_pair = dict(zip(distinct, map(mean_log_prob, scores), strict=True))
        return [by_pair[pair] for pair in zip(read, written, strict=True)]
