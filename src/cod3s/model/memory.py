"""An engine that remembers its answers, for many settings on the same sources.

What a model writes or scores depends on the request alone, so an evaluation whose systems share a stage, or a
sweep of weights that only rank, decodes it once.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from threading import Lock

from cod3s.model.engine import Draws, Engine, LogProbs, Request
from cod3s.records import Hypothesis


class RememberingEngine:
    """Asks `engine` only for what it does not remember.

    Beyond `most` hypotheses (some 500 bytes each), it forgets the least recently used.
    """

    def __init__(self, engine: Engine, most: int) -> None:
        self.engine, self._most = engine, most
        self._known: OrderedDict[Hashable, list[Hypothesis]] = OrderedDict()
        self._held = 0
        self._lock = Lock()

    def search(
        self, requests: Sequence[Request], *, beam: int, max_tokens: int, only: Sequence[int] | None = None
    ) -> list[list[Hypothesis]]:
        options = ("search", beam, max_tokens, None if only is None else tuple(only))

        def ask(numbers: Sequence[int]) -> list[list[Hypothesis]]:
            missing = [requests[number] for number in numbers]
            return self.engine.search(missing, beam=beam, max_tokens=max_tokens, only=only)

        return self._recall([(options, request) for request in requests], ask)

    def sample(self, requests: Sequence[Request], draws: Draws) -> list[list[Hypothesis]]:
        # Draws also depend on the requests before them, so only an identical call is remembered.
        options = (draws, tuple(requests))

        def ask(numbers: Sequence[int]) -> list[list[Hypothesis]]:
            drawn = self.engine.sample(requests, draws)
            return [drawn[number] for number in numbers]

        return self._recall([(options, number) for number in range(len(requests))], ask)

    def score(
        self,
        requests: Sequence[Request],
        continuations: Sequence[Sequence[int]],
        *,
        end: bool = True,
        then: int | None = None,
    ) -> list[Hypothesis]:
        def ask(numbers: Sequence[int]) -> list[list[Hypothesis]]:
            scored = self.engine.score(
                [requests[number] for number in numbers],
                [continuations[number] for number in numbers],
                end=end,
                then=then,
            )
            return [[hypothesis] for hypothesis in scored]

        rows = zip(requests, continuations, strict=True)
        scored = self._recall([("score", request, tuple(tokens), end, then) for request, tokens in rows], ask)
        return [hypothesis for hypotheses in scored for hypothesis in hypotheses]

    def weigh(self, requests: Sequence[Request], tokens: Sequence[int]) -> LogProbs:
        return self.engine.weigh(requests, tokens)

    def cuts(self, source: str) -> bool:
        return self.engine.cuts(source)

    def _recall(
        self, keys: Sequence[Hashable], ask: Callable[[Sequence[int]], list[list[Hypothesis]]]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each key; `ask` is called once, with the numbers of the keys that are not known."""
        with self._lock:
            recalled = [self._known.get(key) for key in keys]
        missing = [number for number, hypotheses in enumerate(recalled) if hypotheses is None]
        if missing:
            for number, hypotheses in zip(missing, ask(missing), strict=True):
                recalled[number] = hypotheses
        whole = [hypotheses or [] for hypotheses in recalled]
        with self._lock:
            for key, hypotheses in zip(keys, whole, strict=True):
                self._keep(key, hypotheses)
        return whole

    def _keep(self, key: Hashable, hypotheses: list[Hypothesis]) -> None:
        self._held += _size(hypotheses) - _size(self._known.pop(key, None))
        self._known[key] = hypotheses
        while self._held > self._most and len(self._known) > 1:
            self._held -= _size(self._known.popitem(last=False)[1])


def _size(hypotheses: list[Hypothesis] | None) -> int:
    return 0 if hypotheses is None else max(1, len(hypotheses))  # an empty result takes space, too
