"""Collect the texts of a generator, and decide when to stop asking it."""

from dataclasses import replace

import numpy as np

from cod3s.ask.coverage import Coverage, measure_coverage
from cod3s.ask.diversified import Diversified, Tokens
from cod3s.ask.replies import Answered, Failed
from cod3s.encode import Encoder, Vectors
from cod3s.errors import Cod3sError
from cod3s.selection import Selection, check_method, default_min_hamming, select
from cod3s.signatures import Packed, keep_apart, pack
from cod3s.signatures.signer import open_signer

MIN_GAIN = 0.05  # new bins per call: a generator that always says the same thing is asked ten times
_FAILURES_IN_A_ROW = 3


class Inquiry:
    """The texts so far, with their vectors and signatures; `stopped` is empty while asking should continue."""

    def __init__(
        self,
        k: int,
        *,
        budget: int,
        token_budget: int | None,
        min_gain: float,
        method: str,
        min_hamming: int | None,
        bits: int,
        encoder: Encoder | str,
        seed: int,
    ) -> None:
        if k < 1 or budget < 1:
            raise Cod3sError(f"k is {k} and the budget is {budget} calls", hint="both must be at least 1")
        if token_budget is not None and token_budget < 1:
            raise Cod3sError(f"the token budget is {token_budget}", hint="it must be at least 1")
        self._k, self._budget, self._token_budget, self._min_gain = k, budget, token_budget, min_gain
        self._method = check_method(method)  # fail now, not after all calls have been paid for
        self._min_hamming = min_hamming
        self._rule = default_min_hamming(bits) if min_hamming is None else min_hamming
        self._signer = open_signer(encoder, bits, seed)
        self._texts: list[str] = []
        self._scores: list[float | None] = []
        self._calls_of_texts: list[int] = []
        self._vectors: Vectors = np.zeros((0, self._signer.encoder.dim), np.float32)
        self._packed: Packed = np.zeros((0, (bits + 7) // 8), np.uint8)
        self._failures: list[Failed] = []
        self._failures_in_a_row = 0
        self._strategies: list[str] = []
        self.coverage = Coverage(0, 0, 0, 0, 0)
        self.tokens: Tokens | None = None
        self.stopped = ""

    @property
    def calls(self) -> int:
        """Calls made so far."""
        return len(self._strategies)

    @property
    def left(self) -> int:
        """Calls that the budget still allows."""
        return self._budget - self.calls

    @property
    def bins_filled(self) -> int:
        """Bins that are far enough apart, at most k."""
        return min(self._k, self.coverage.bins)

    def kept(self) -> list[str]:
        """One text per bin, in the order in which the bins were first seen."""
        return [self._texts[row] for row in keep_apart(self._packed, self._rule).kept]

    def hear(self, reply: Answered | Failed, strategy: str, tokens: Tokens | None) -> int:
        """Add the reply of a call and the tokens spent so far; returns the number of new bins."""
        self._strategies.append(strategy)
        self.tokens = tokens
        before = self.coverage.bins
        if isinstance(reply, Failed):
            self._failures.append(reply)
            self._failures_in_a_row += 1
        else:
            self._failures_in_a_row = 0
            self._add(reply)
        self.stopped = self._reason_to_stop()
        return self.coverage.bins - before

    def conclude(self, prompt: str) -> Diversified:
        """Choose k of everything the generator said; an error if it said nothing."""
        if not self._texts:
            last = self._failures[-1]
            calls = "1 call" if self.calls == 1 else f"{self.calls} calls"
            raise Cod3sError(
                f"{calls} gave no answer; the last one failed: {last.reason}",
                hint=getattr(last.error, "hint", "") or "call the generator by itself with this prompt",
            ) from last.error
        scores = self._all_scores()
        return Diversified(
            prompt=prompt,
            selection=self._select(scores),
            candidates=tuple(self._texts),
            scores=scores,
            calls=self.calls,
            stopped=self.stopped,
            coverage=self.coverage,
            failures=tuple(failure.reason for failure in self._failures),
            strategies=tuple(self._strategies),
            tokens=self.tokens,
        )

    def _add(self, reply: Answered) -> None:
        self._texts += reply.texts
        self._scores += reply.scores
        self._calls_of_texts += [self.calls] * len(reply.texts)
        vectors = self._signer.vectors(reply.texts)
        self._vectors = np.concatenate([self._vectors, vectors])
        self._packed = np.concatenate([self._packed, pack(self._signer.code.sign(vectors))])
        self.coverage = measure_coverage(self._packed, self._calls_of_texts, self._rule)

    def _reason_to_stop(self) -> str:
        if self._is_filled():
            return "filled"
        failed_for_good = bool(self._failures_in_a_row) and self._failures[-1].final
        if failed_for_good or self._failures_in_a_row >= _FAILURES_IN_A_ROW:
            return "failures"
        if not self.left:
            return "budget"
        if self._token_budget is not None and self.tokens is not None and self.tokens.total >= self._token_budget:
            return "tokens"
        return "exhausted" if self._texts and self.coverage.expected_new < self._min_gain else ""

    def _is_filled(self) -> bool:
        """Whether the Hamming rule keeps k texts, going down the ranking."""
        scores = self._all_scores()
        order = np.arange(len(self._texts)) if scores is None else np.argsort(-np.array(scores), kind="stable")
        return len(keep_apart(self._packed[order], self._rule, self._k).kept) == self._k

    def _all_scores(self) -> tuple[float, ...] | None:
        """The scores, if every text has a score: scores of only some texts cannot rank them all."""
        scores = tuple(score for score in self._scores if score is not None)
        return scores if len(scores) == len(self._scores) else None

    def _select(self, scores: tuple[float, ...] | None) -> Selection:
        selection = select(
            self._texts,
            self._k,
            scores=scores,
            method=self._method,
            min_hamming=self._min_hamming,
            bits=self._signer.code.bits,
            vectors=self._vectors,
            seed=self._signer.code.seed,
        )
        remarks = selection.remarks
        if scores is None and any(score is not None for score in self._scores):
            remarks = (*remarks, "some answers had no finite score, so all are ranked in the order they came")
        settings = {**selection.settings, "encoder": self._signer.encoder.id}
        return replace(selection, settings=settings, remarks=remarks)
