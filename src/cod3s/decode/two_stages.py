"""The method of the paper: infer signatures that lie apart, write sentences in their bins, choose the answers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from cod3s.decode.choice import SUITABLE, Taken, choose_answers, keep_suitable
from cod3s.decode.models import Models
from cod3s.decode.plausibility import Judge
from cod3s.decode.request import Batch
from cod3s.decode.rerank import decide_auto
from cod3s.decode.sentences import Bins, Candidate, rank_sentences, write_sentences
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
    """The answers to each source: the best sentences of the bins that stage 1 chose."""
    chosen = choose_signatures(models, batch)
    bins = rank_sentences(models, batch, write_sentences(models, batch, chosen, judge), judge)
    rows: list[list[Answer]] = []
    for position, signatures in enumerate(chosen):
        choice = AnswerChoice(batch, position, signer, judge)
        rows.append(choice.answers(signatures, bins[position]))
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
    spare = batch.wanted[0] is None and len(chosen) > config.k  # which bins give answers is known only at the end
    if not spare:
        yield SignaturesChosen(tuple(chosen))
    alone = config.pool == "off" and not config.recalls  # a bin's sentences do not depend on other bins
    in_order = config.search == "beam" and config.bins == config.k and alone
    together = group if in_order else max(1, len(chosen))
    choice = AnswerChoice(batch, 0, signer, judge)
    number = 0
    for start in range(0, len(chosen), together):
        signatures = chosen[start : start + together]
        yield StageStarted("writing", len(signatures))
        written = write_sentences(models, batch, [signatures], judge)
        yield StageStarted("choosing answers")
        (bins,) = rank_sentences(models, batch, written, judge)
        answers = choice.answers(signatures, bins)
        if spare:
            answered = {answer.signature for answer in answers}
            yield SignaturesChosen(tuple(bin for bin in chosen if bin.signature in answered))
        for answer in answers:
            yield AnswerMade(number, answer)
            number += 1
    choice.add_remarks()


class AnswerChoice:
    """Chooses the answers to one source, some bins at a time, and counts what was left out."""

    def __init__(self, batch: Batch, position: int, signer: Signer | None, judge: Judge | None) -> None:
        self._batch, self._position, self._signer = batch, position, signer
        self._floor = judge.critic.floor if judge and batch.config.drop else None
        self._taken = Taken()
        self._bins = self._unsuitable = self._filled = self._implausible = 0

    def answers(self, chosen: Sequence[ChosenSignature], bins: Bins) -> list[Answer]:
        """The answers from these bins: suitable, different from the answers before, and plausible."""
        batch, position = self._batch, self._position
        suitable = [keep_suitable(batch.config, batch.texts[position], candidates) for candidates in bins]
        signatures = [signature.signature for signature in chosen]
        most = batch.config.k if batch.wanted[position] is None else None
        rows = choose_answers(
            batch.config, batch.sources[position], signatures, suitable, self._taken, self._signer, most
        )
        answers = [
            _make_answer(signature, candidate)
            for signature, candidates in zip(chosen, rows, strict=True)
            for candidate in candidates
            if self._floor is None or (candidate.plausibility or 0.0) >= self._floor
        ]
        self._bins += len(bins)
        self._unsuitable += sum(bool(before) and not after for before, after in zip(bins, suitable, strict=True))
        self._filled += sum(map(bool, rows))
        self._implausible += sum(map(len, rows)) - len(answers)
        return answers

    def add_remarks(self) -> None:
        """Say how many bins gave no answer, and why, and how many answers were implausible."""
        config, remarks = self._batch.config, self._batch.remarks[self._position]
        named = self._batch.wanted[self._position] is not None
        if self._unsuitable:
            remarks.append(f"{self._unsuitable} of {self._bins} bins had no sentence {SUITABLE}")
        wanted = self._bins if named else min(config.k, self._bins)
        if (empty := wanted - self._filled - self._unsuitable) > 0:
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
