"""The method of the paper: infer signatures that lie apart, write sentences in their bins, choose the answers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from math import ceil

from cod3s.decode.choice import SUITABLE, Taken, choose_answers, keep_suitable
from cod3s.decode.models import Models
from cod3s.decode.plausibility import Judge
from cod3s.decode.request import Batch
from cod3s.decode.rerank import decide_auto
from cod3s.decode.sentences import (
    Bins,
    Candidate,
    add_to_bins,
    rank_sentences,
    recall_answers,
    write_sentences,
)
from cod3s.decode.signatures import choose_signatures
from cod3s.records import Answer, AnswerMade, ChosenSignature, Event, SignaturesChosen, StageStarted
from cod3s.signatures.signer import Signer

_SHOW_ALL = "`cod3s generate --all`, or drop=False, shows them"


def with_auto_decided(models: Models, batch: Batch) -> Batch:
    """The batch with every `auto` among its options decided; remarks say what the models do not allow."""
    config, remarks = decide_auto(models, batch.relation, batch.config, signatures_wanted=None not in batch.wanted)
    for row in batch.remarks:
        row.extend(remarks)
    return replace(batch, config=config)


def answer_in_two_stages(
    models: Models, batch: Batch, signer: Signer | None, judge: Judge | None = None
) -> list[list[Answer]]:
    """The answers to each source: known ones that are surely good, and the best of the bins that stage 1 chose."""
    chosen = choose_signatures(models, batch)
    recalled = recall_answers(batch, judge)
    choices = [AnswerChoice(batch, position, signer, judge) for position in range(len(chosen))]
    known = [
        choice.take_sure(signatures, candidates)
        for choice, signatures, candidates in zip(choices, chosen, recalled, strict=True)
    ]
    left = [choice.bins_left(signatures) for choice, signatures in zip(choices, chosen, strict=True)]
    bins = rank_sentences(models, batch, write_sentences(models, batch, left, judge), judge)
    rows = [
        [*known[position], *choice.answers(left[position], bins[position], recalled[position])]
        for position, choice in enumerate(choices)
    ]
    for choice in choices:
        choice.add_remarks()
    return rows


def stream_two_stages(
    models: Models, batch: Batch, signer: Signer | None, judge: Judge | None, group: int
) -> Iterator[Event]:
    """The same for a batch of one source, each group of bins as soon as it is written, with its stages."""
    models.signature(batch.relation)  # opens the model, before its first stage
    yield StageStarted("choosing bins")
    (chosen,) = choose_signatures(models, batch)
    config = batch.config
    choice = AnswerChoice(batch, 0, signer, judge)
    places = count()
    if config.recalls:
        yield StageStarted("recalling answers")
    (recalled,) = recall_answers(batch, judge)
    if known := choice.take_sure(chosen, recalled):
        yield from _answer_events(known, chosen, places)
    left = choice.bins_left(chosen)
    spare = batch.wanted[0] is None and len(left) > config.k - len(known)  # whose bins are known only at the end
    if not spare and (left or not known):
        yield SignaturesChosen(tuple(left))
    alone = config.pool == "off" and not config.recalls  # a bin's sentences do not depend on other bins
    in_order = config.search == "beam" and config.bins == config.k and alone
    together = group if in_order else max(1, len(left))
    for start in range(0, len(left), together):
        signatures = left[start : start + together]
        yield StageStarted("writing", len(signatures))
        written = write_sentences(models, batch, [signatures], judge)
        yield StageStarted("choosing answers")
        (bins,) = rank_sentences(models, batch, written, judge)
        answers = choice.answers(signatures, bins, recalled)
        if spare:
            yield from _answer_events(answers, chosen, places)
        else:
            yield from (AnswerMade(next(places), answer) for answer in answers)
    choice.add_remarks()


def _answer_events(
    answers: Sequence[Answer], chosen: Sequence[ChosenSignature], places: Iterator[int]
) -> Iterator[Event]:
    """The bins of some answers, and then the answers."""
    answered = dict.fromkeys(answer.signature for answer in answers)
    bins = {bin.signature: bin for bin in chosen}
    yield SignaturesChosen(tuple(bins[signature] for signature in answered))
    yield from (AnswerMade(next(places), answer) for answer in answers)


class AnswerChoice:
    """Chooses the answers to one source, some bins at a time, and counts what was left out."""

    def __init__(self, batch: Batch, position: int, signer: Signer | None, judge: Judge | None) -> None:
        self._batch, self._position, self._signer = batch, position, signer
        self._floor = judge.critic.floor if judge and batch.config.drop else None
        self._taken = Taken()
        self._answered: set[str] = set()  # signatures of bins that gave answers
        self._bins = self._unsuitable = self._implausible = 0

    def take_sure(self, chosen: Sequence[ChosenSignature], recalled: Sequence[Candidate]) -> list[Answer]:
        """Recalled answers that are plausible enough to be taken before anything is written."""
        config, source = self._batch.config, self._batch.texts[self._position]
        sure = [candidate for candidate in recalled if (candidate.plausibility or 0.0) >= config.sure]
        answers = self._choose(chosen, [[] for _ in chosen], keep_suitable(config, source, sure))
        self._bins += len(self._answered)
        return answers

    def bins_left(self, chosen: Sequence[ChosenSignature]) -> list[ChosenSignature]:
        """The bins to write in: the best of those without an answer, with spare ones as the options say."""
        left = [signature for signature in chosen if signature.signature not in self._answered]
        if self._batch.wanted[self._position] is not None:
            return left
        config = self._batch.config
        missing = config.k - len(self._answered)
        return left[: ceil(missing * config.bins / config.k)]

    def answers(
        self, chosen: Sequence[ChosenSignature], bins: Bins, recalled: Sequence[Candidate] = ()
    ) -> list[Answer]:
        """The answers from these bins: suitable, different from the answers before, and plausible."""
        self._bins += len(bins)
        return self._choose(chosen, bins, recalled)

    def _choose(
        self, chosen: Sequence[ChosenSignature], bins: Bins, recalled: Sequence[Candidate]
    ) -> list[Answer]:
        batch, position = self._batch, self._position
        signatures = [signature.signature for signature in chosen]
        offered = add_to_bins(recalled, signatures, bins)
        suitable = [keep_suitable(batch.config, batch.texts[position], candidates) for candidates in offered]
        most = None if batch.wanted[position] is not None else batch.config.k - len(self._answered)
        rows = choose_answers(
            batch.config, batch.sources[position], signatures, suitable, self._taken, self._signer, most
        )
        self._answered.update(signatures[number] for number in rows)
        self._unsuitable += sum(
            bool(before) and not after for before, after in zip(offered, suitable, strict=True)
        )
        answers = [
            _make_answer(chosen[number], candidate)
            for number, candidates in rows.items()
            for candidate in candidates
            if self._floor is None or (candidate.plausibility or 0.0) >= self._floor
        ]
        self._implausible += sum(map(len, rows.values())) - len(answers)
        return answers

    def add_remarks(self) -> None:
        """Say how many bins gave no answer, and why, and how many answers were implausible."""
        config, remarks = self._batch.config, self._batch.remarks[self._position]
        named = self._batch.wanted[self._position] is not None
        if self._unsuitable:
            remarks.append(f"{self._unsuitable} of {self._bins} bins had no sentence {SUITABLE}")
        wanted = self._bins if named else min(config.k, self._bins)
        if (empty := wanted - len(self._answered) - self._unsuitable) > 0:
            why = "faithful or new" if config.faithful == "filter" else "new"
            remarks.append(f"{empty} of {self._bins} bins had no sentence that was {why}")
        if self._implausible:
            remarks.append(f"left out {self._implausible} implausible answers; {_SHOW_ALL}")


def _make_answer(signature: ChosenSignature, candidate: Candidate) -> Answer:
    return Answer(
        text=candidate.text,
        score=candidate.score,
        forward=candidate.forward,
        backward=candidate.backward,
        signature=signature.signature,
        signature_rank=signature.rank,
        signature_score=signature.score,
        signature_forward=signature.forward,
        signature_backward=signature.backward,
        count=signature.count,
        medoid=signature.medoid,
        realised=candidate.realised,
        hamming=candidate.hamming,
        plausibility=candidate.plausibility,
        known_for=candidate.known_for,
    )
