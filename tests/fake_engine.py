"""A model with chosen scores, for the tests of single stages: probabilities are looked up or made from a seed."""

import random
from collections.abc import Callable, Sequence

import numpy as np

from cod3s.model.engine import Draws, LogProbs, Request
from cod3s.records import Hypothesis


class FakeEngine:
    """Weighs tokens by a seed; searches, samples and scores by what it is given."""

    def __init__(
        self,
        seed: int = 0,
        *,
        found: Callable[[Request], list[Hypothesis]] | None = None,
        scored: Callable[[Request, Sequence[int]], float] | None = None,
    ) -> None:
        self._seed, self._found, self._scored = seed, found, scored
        self.calls: list[tuple[str, int]] = []  # method, number of requests

    def search(
        self, requests: Sequence[Request], *, beam: int, max_tokens: int, only: Sequence[int] | None = None
    ) -> list[list[Hypothesis]]:
        assert self._found is not None
        self.calls.append(("search", len(requests)))
        return [self._found(request)[:beam] for request in requests]

    def sample(self, requests: Sequence[Request], draws: Draws) -> list[list[Hypothesis]]:
        return self.search(requests, beam=draws.samples, max_tokens=draws.max_tokens)

    def score(
        self,
        requests: Sequence[Request],
        continuations: Sequence[Sequence[int]],
        *,
        end: bool = True,
        then: int | None = None,
    ) -> list[Hypothesis]:
        assert self._scored is not None
        self.calls.append(("score", len(requests)))
        return [
            Hypothesis(tuple(tokens), self._scored(request, tokens), len(tokens) + end)
            for request, tokens in zip(requests, continuations, strict=True)
        ]

    def weigh(self, requests: Sequence[Request], tokens: Sequence[int]) -> LogProbs:
        self.calls.append(("weigh", len(requests)))
        rows = []
        for request in requests:
            draw = random.Random(f"{self._seed} {request.source} {request.prefix}")
            logits = np.array([draw.choice([0.0, 1.0, 1.0, 4.0]) + draw.random() for _ in tokens])
            rows.append(logits - np.log(np.exp(logits).sum()))
        return np.array(rows).reshape(len(requests), len(tokens))

    def cuts(self, source: str) -> bool:
        return False
