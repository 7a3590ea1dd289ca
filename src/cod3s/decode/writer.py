"""Stage 2 as a whole: a task and the signatures chosen for it in, the best sentences of each signature out."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cod3s.decode.check import Checker, keep_faithful
from cod3s.decode.choice import Taken, Weights, choose
from cod3s.decode.config import DecodeConfig
from cod3s.decode.freshness import fresh_first
from cod3s.decode.players import Players
from cod3s.decode.rerank import rank, score_sentences_backward
from cod3s.decode.sentences import Candidate, write_sentences
from cod3s.decode.task import Task
from cod3s.records import ChosenSignature


class SentenceWriter:
    """Writes with the models of one bundle; the checker is opened when an answer's own signature is asked for."""

    def __init__(self, players: Players, checker: Callable[[], Checker]) -> None:
        self._players, self._checker = players, checker

    def __call__(self, task: Task, chosen: Sequence[Sequence[ChosenSignature]]) -> list[list[list[Candidate]]]:
        """The candidates of each source and signature, best first: all of them go to the engine together."""
        bins = write_sentences(
            self._players.sentence(task.relation),
            self._players.vocabulary,
            task.sources,
            [[one.signature for one in own] for own in chosen],
            task.config,
        )
        if task.config.rerank_sentences == "mmi":
            bins = self._reranked(task, bins)
        return bins

    def pick(
        self,
        config: DecodeConfig,
        source: str,
        chosen: Sequence[ChosenSignature],
        bins: Sequence[Sequence[Candidate]],
        taken: Taken,
    ) -> list[list[Candidate]]:
        """Of one source's bins, the best of each that are not `taken`, to which they are added.

        With their own signatures, and weighed, ranked or filtered by those, where that is asked for.
        """
        signatures = [one.signature for one in chosen]
        if config.by_signature:
            signed = self._checker().realise(bins, signatures)
            bins = [keep_faithful(own, mode=config.faithful, within=config.faithful_within) for own in signed]
        if config.fresh:
            bins = [fresh_first(source, own) for own in bins]
        weights = Weights(config.bit_weight, config.nearness_weight) if config.faithful == "weigh" else None
        picked = choose(bins, config.per_bin, taken, weights)
        if config.check and not config.by_signature:  # only what is returned needs to be signed
            return self._checker().realise(picked, signatures)
        return picked

    def _reranked(self, task: Task, bins: list[list[list[Candidate]]]) -> list[list[list[Candidate]]]:
        """By MMI, with one backward call for all candidates."""
        backward = self._players.backward(task.relation)
        assert backward is not None  # the generator has looked
        pairs = [
            (source, one.text)
            for source, own in zip(task.sources, bins, strict=True)
            for candidates in own
            for one in candidates
        ]
        scores = score_sentences_backward(backward, self._players.vocabulary, pairs)

        def reranked(source: str, candidates: Sequence[Candidate]) -> list[Candidate]:
            rows = rank(
                [one.forward for one in candidates],
                [scores[source, one.text] for one in candidates],
                task.config.sentence_weight,
            )
            return [replace(candidates[row.place], score=row.score, backward=row.backward) for row in rows]

        return [
            [reranked(source, candidates) for candidates in own]
            for source, own in zip(task.sources, bins, strict=True)
        ]
