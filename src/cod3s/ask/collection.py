"""Collect the answers of a generator, and decide when to stop asking it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cod3s.ask.config import DiversifyConfig
from cod3s.ask.coverage import Coverage, measure_coverage
from cod3s.ask.diversified import Candidate, Diversified, Measured
from cod3s.ask.prompts import Prompt
from cod3s.ask.replies import Reply, Tokens
from cod3s.ask.structure import Structure
from cod3s.encode import Vectors
from cod3s.errors import Cod3sError
from cod3s.selection import AUTO, Selection
from cod3s.selection.candidates import check_texts, open_source
from cod3s.selection.choose import choose
from cod3s.selection.history import History, open_history
from cod3s.signatures import Packed, hamming, keep_apart, pack
from cod3s.signatures.signer import open_signer
from cod3s.text import is_visible

_FAILURES_IN_A_ROW = 3


@dataclass(frozen=True, eq=False)
class Shown:
    """Texts that answers should be unlike, with their signatures, and texts that they should be like."""

    texts: tuple[str, ...]
    packed: Packed
    unlike: History | None
    like: History | None

    @staticmethod
    def of(unlike: Sequence[str], like: Sequence[str], config: DiversifyConfig) -> "Shown":
        signer = open_signer(config.encoder, config.bits, config.seed)
        texts = tuple(filter(is_visible, check_texts(unlike, "text of unlike")))
        packed = pack(signer.code.sign(signer.vectors(texts)))
        return Shown(texts, packed, open_history(texts or None, "unlike"), open_history([*like] or None, "like"))


class Collection:
    """The answers so far, with their vectors and signatures; `stopped` is empty while asking should continue."""

    def __init__(self, config: DiversifyConfig, history: Shown) -> None:
        self._config, self._history = config, history
        bits, self._rule = config.bits, config.resolve().hamming
        self._signer = open_signer(config.encoder, bits, config.seed)
        self._candidates: list[Candidate] = []
        self._vectors: Vectors = np.zeros((0, self._signer.encoder.dim), np.float32)
        self._packed: Packed = np.zeros((0, (bits + 7) // 8), np.uint8)
        self._failures: list[Reply] = []
        self._failures_in_a_row = 0
        self._unscored: list[str] = []
        self.strategies: list[str] = []
        self.coverage = Coverage(0, 0, 0, 0, 0)
        self.tokens: Tokens | None = None
        self.stopped = ""

    @property
    def calls(self) -> int:
        """Calls made so far."""
        return len(self.strategies)

    @property
    def left(self) -> int:
        """Calls that the budget still allows."""
        return max(0, self._config.budget - self.calls)

    @property
    def bins_filled(self) -> int:
        """Bins that are far enough apart, at most k."""
        return min(self._config.k, self.coverage.bins)

    def kept(self) -> list[str]:
        """The texts to be unlike, then one answer per bin, in the order in which the bins were first seen."""
        rows = self._usable()
        kept = keep_apart(self._packed[rows], self._rule).kept
        return [*self._history.texts, *(self._candidates[row].text for row in rows[kept])]

    def distances(self, texts: Sequence[str]) -> list[int]:
        """Bits from each text to the nearest earlier answer, or to the nearest text to be unlike."""
        packed = self._sign(texts)[1]
        earlier = np.concatenate([self._history.packed, self._packed])
        if not len(earlier):
            return [self._config.bits] * len(texts)
        distances: list[int] = hamming(packed[:, None], earlier).min(axis=1).tolist()
        return distances

    def add(
        self, reply: Reply, candidates: Sequence[Candidate], strategy: str, unscored: Sequence[str] = ()
    ) -> int:
        """Add a call with its reply and the answers in it; returns the number of new bins."""
        self.strategies.append(strategy)
        self.add_tokens(reply.tokens)
        self._unscored += unscored
        before = self.coverage.bins
        is_unscored = bool(unscored) and len(unscored) == len(candidates)
        self._failures_in_a_row = self._failures_in_a_row + 1 if reply.failure or is_unscored else 0
        if reply.failure:
            self._failures.append(reply)
        else:
            vectors, packed = self._sign([candidate.text for candidate in candidates])
            self._candidates += candidates
            self._vectors = np.concatenate([self._vectors, vectors])
            self._packed = np.concatenate([self._packed, packed])
            rows = self._usable()
            calls = [self._candidates[row].call for row in rows]
            self.coverage = replace(measure_coverage(self._packed[rows], calls, self._rule), calls=self.calls)
        return self.coverage.bins - before

    def decide(self) -> None:
        """Decide whether to stop after what was added."""
        reason = self._reason_to_stop()
        if reason == "filled" or self.stopped != "limit":
            self.stopped = reason

    def forgive_failures(self) -> None:
        """Count failures in a row from here: those of an earlier run do not end this one."""
        self._failures_in_a_row = 0

    def add_tokens(self, tokens: Tokens | None) -> None:
        """Count the tokens of a call, or of a judge."""
        if tokens is not None:
            self.tokens = tokens if self.tokens is None else self.tokens + tokens

    def conclude(self, prompt: Prompt, structure: Structure | None) -> Diversified:
        """Choose k of all answers; an error if there are none."""
        if not self._candidates:
            raise self._nothing()
        if self._unscored and self._scores() is None:
            raise Cod3sError(
                f"no answer could be scored: {self._unscored[-1]}",
                hint="try the score function on one answer; it must return a finite number",
            )
        selection = self._select()
        chosen = np.array([answer.index for answer in selection], np.intp)
        return Diversified(
            prompt=prompt.original(),
            selection=selection,
            candidates=tuple(self._candidates),
            calls=self.calls,
            stopped=self.stopped or "select_only",
            coverage=self.coverage,
            before=self._measure(np.arange(min(self._config.k, len(self._candidates)))),
            after=self._measure(chosen),
            failures=tuple(failure.failure for failure in self._failures),
            strategies=tuple(self.strategies),
            tokens=self.tokens,
            structure=structure,
        )

    def _nothing(self) -> Cod3sError:
        if not self._failures:
            reason = "a limit of the run was reached" if self.stopped == "limit" else "no call was made"
            return Cod3sError(f"there is no answer, because {reason}", hint="raise the limits, or ask again")
        last = self._failures[-1]
        calls = "1 call" if self.calls == 1 else f"{self.calls} calls"
        error = Cod3sError(
            f"{calls} gave no answer; the last one failed: {last.failure}",
            hint=getattr(last.error, "hint", "") or "call the generator by itself with this prompt",
        )
        error.__cause__ = last.error
        return error

    def _sign(self, texts: Sequence[str]) -> tuple[Vectors, Packed]:
        vectors = self._signer.vectors(texts)
        return vectors, pack(self._signer.code.sign(vectors))

    def _usable(self) -> npt.NDArray[np.intp]:
        """The answers that count as new, best first: not below the floor, and unlike what was shown before."""
        rows = self._rated()
        if len(self._history.packed) and len(rows):
            rows = rows[hamming(self._packed[rows][:, None], self._history.packed).min(axis=1) > self._rule]
        return rows

    def _rated(self) -> npt.NDArray[np.intp]:
        """The answers that are not below the floor, best first."""
        scores = self._scores()
        rows = np.arange(len(self._candidates)) if scores is None else np.argsort(-scores, kind="stable")
        if scores is not None:
            rows = rows[np.isfinite(scores[rows])]
            if self._config.floor is not None:
                rows = rows[scores[rows] >= self._config.floor]
        return rows

    def _scores(self) -> npt.NDArray[np.float64] | None:
        """The scores; -inf where there is none, and None if no answer has one."""
        scores = [candidate.score for candidate in self._candidates]
        if all(score is None for score in scores):
            return None
        return np.array([-np.inf if score is None else score for score in scores])

    def _reason_to_stop(self) -> str:
        rows = self._usable()
        if len(keep_apart(self._packed[rows], self._rule, self._config.k).kept) == self._config.k:
            return "filled"
        failed_for_good = bool(self._failures_in_a_row and self._failures) and self._failures[-1].final
        if failed_for_good or self._failures_in_a_row >= _FAILURES_IN_A_ROW:
            return "failures"
        if not self.left:
            return "budget"
        budget = self._config.token_budget
        if budget is not None and self.tokens is not None and self.tokens.total >= budget:
            return "tokens"
        is_poor = bool(self._candidates) and self.coverage.expected_new < self._config.min_gain
        return "exhausted" if is_poor else ""

    def _select(self) -> Selection:
        """Choose among all answers; the rule decides where `auto` would take closer ones than needed."""
        rows = self._rated()
        method = self._config.method
        selection = self._select_by(method, rows)
        if method == AUTO:
            apart = len(keep_apart(self._packed[self._usable()], self._rule, self._config.k).kept)
            chosen = np.array([answer.index for answer in selection], np.intp)
            if len(keep_apart(self._packed[chosen], self._rule).kept) < apart:
                selection = self._select_by("signatures", rows)
        remarks = list(selection.remarks)
        if left_out := len(self._candidates) - len(rows):
            answers = "1 answer" if left_out == 1 else f"{left_out} answers"
            remarks.append(f"{answers} could not be chosen: without a score, or below the floor")
        remarks += [f"an answer was not scored: {reason}" for reason in dict.fromkeys(self._unscored)]
        return replace(selection, remarks=tuple(remarks))

    def _select_by(self, method: str, rows: npt.NDArray[np.intp]) -> Selection:
        """A selection by this method, whose indices are positions among all answers."""
        rows = np.sort(rows)
        scores = self._scores()
        source = open_source(
            [self._candidates[row].text for row in rows],
            self._signer.encoder,
            self._vectors[rows] if len(rows) else None,
            self._config.bits,
            self._config.seed,
        )
        selection = choose(
            source,
            None if scores is None else scores[rows],
            replace(self._config, method=method).resolve(),
            self._history.unlike,
            self._history.like,
        )
        selected = tuple(
            replace(
                answer,
                index=int(rows[answer.index]),
                duplicates=tuple(int(rows[position]) for position in answer.duplicates),
            )
            for answer in selection
        )
        settings = {**selection.settings, "encoder": self._signer.encoder.id}
        return replace(selection, selected=selected, settings=settings)

    def _measure(self, rows: npt.NDArray[np.intp]) -> Measured:
        scores = [score for row in rows if (score := self._candidates[row].score) is not None]
        quality = float(np.mean(scores)) if scores else None
        return Measured(len(rows), len(keep_apart(self._packed[rows], self._rule).kept), quality)
