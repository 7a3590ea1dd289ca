"""What is known while a generator is being asked, and when to stop. Replies in, the result out."""

from dataclasses import replace

import numpy as np

from cod3s.asking.coverage import Coverage, measure_coverage
from cod3s.asking.replies import Answered, Failed
from cod3s.asking.result import Diversified
from cod3s.encode import Encoder, Vectors, load_encoder
from cod3s.errors import Cod3sError
from cod3s.selection import Selection, check_method, default_min_hamming, select
from cod3s.signatures import Packed, keep_apart, pack, random_code
from cod3s.text import for_embedding

MIN_GAIN = 0.05  # new bins a call: with it a generator that always says the same is asked ten times
_FAILURES_IN_A_ROW = 3


class Asking:
    """The texts heard so far, with their vectors and signatures; `stopped` is empty while asking should go on."""

    def __init__(
        self,
        k: int,
        *,
        budget: int,
        min_gain: float,
        method: str,
        min_hamming: int | None,
        bits: int,
        encoder: Encoder | str,
        seed: int,
    ) -> None:
        if k < 1 or budget < 1:
            raise Cod3sError(f"{k} answers in {budget} calls were asked for", hint="ask for at least 1 in 1 call")
        self._k, self._budget, self._min_gain = k, budget, min_gain
        self._method = check_method(method)  # now, not after all calls were paid for
        self._min_hamming = default_min_hamming(bits) if min_hamming is None else min_hamming
        self._encoder = load_encoder(encoder) if isinstance(encoder, str) else encoder
        self._code = random_code(bits, self._encoder.dim, seed)
        self._texts: list[str] = []
        self._scores: list[float | None] = []
        self._calls_of_texts: list[int] = []
        self._vectors: Vectors = np.zeros((0, self._encoder.dim), np.float32)
        self._failures: list[Failed] = []
        self._in_a_row = 0
        self._calls = 0
        self._packed: Packed = np.zeros((0, (bits + 7) // 8), np.uint8)
        self._coverage = Coverage(0, 0, 0, 0, 0)
        self.stopped = ""

    @property
    def left(self) -> int:
        """Calls that the budget still allows."""
        return self._budget - self._calls

    def hear(self, reply: Answered | Failed) -> None:
        """Take in what one call brought."""
        self._calls += 1
        if isinstance(reply, Failed):
            self._failures.append(reply)
            self._in_a_row += 1
        else:
            self._in_a_row = 0
            self._add(reply)
        self.stopped = self._reason_to_stop()

    def conclude(self, prompt: str) -> Diversified:
        """The k chosen ones of all that was heard; an error where nothing was."""
        if not self._texts:
            last = self._failures[-1]
            raise Cod3sError(
                f"{self._calls} calls brought no answer; the last one: {last.reason}",
                hint=getattr(last.error, "hint", "") or "try the generator by itself with this prompt",
            ) from last.error
        scores = self._all_scores()
        return Diversified(
            prompt=prompt,
            selection=self._select(scores),
            candidates=tuple(self._texts),
            scores=scores,
            calls=self._calls,
            stopped=self.stopped,
            coverage=self._coverage,
            failures=tuple(failure.reason for failure in self._failures),
        )

    def _add(self, reply: Answered) -> None:
        self._texts += reply.texts
        self._scores += reply.scores
        self._calls_of_texts += [self._calls] * len(reply.texts)
        vectors = self._encoder.encode([for_embedding(text) for text in reply.texts])
        self._vectors = np.concatenate([self._vectors, vectors])
        self._packed = np.concatenate([self._packed, pack(self._code.sign(vectors))])
        self._coverage = measure_coverage(self._packed, self._calls_of_texts, self._min_hamming)

    def _reason_to_stop(self) -> str:
        if self._is_filled():
            return "filled"
        if self._in_a_row >= _FAILURES_IN_A_ROW:
            return "failures"
        if not self.left:
            return "budget"
        return "exhausted" if self._texts and self._coverage.expected_new < self._min_gain else ""

    def _is_filled(self) -> bool:
        """Whether the rule, which goes down the ranking, finds k that lie apart."""
        scores = self._all_scores()
        order = np.arange(len(self._texts)) if scores is None else np.argsort(-np.array(scores), kind="stable")
        return len(keep_apart(self._packed[order], self._min_hamming, self._k).kept) == self._k

    def _all_scores(self) -> tuple[float, ...] | None:
        """The scores, if every text has one: a ranking of some is none."""
        scores = tuple(score for score in self._scores if score is not None)
        return scores if len(scores) == len(self._scores) else None

    def _select(self, scores: tuple[float, ...] | None) -> Selection:
        selection = select(
            self._texts,
            self._k,
            scores=scores,
            method=self._method,
            min_hamming=self._min_hamming,
            bits=self._code.bits,
            vectors=self._vectors,
            seed=self._code.seed,
        )
        remarks = selection.remarks
        if scores is None and any(score is not None for score in self._scores):
            remarks = (*remarks, "some answers had no finite score, so the order they came in is the ranking")
        return replace(selection, settings={**selection.settings, "encoder": self._encoder.id}, remarks=remarks)
