"""The method of the paper: infer signatures that lie apart, write sentences in their bins, choose the answers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from cod3s.decode.choice import SUITABLE, Taken, choose_answers, choose_known, keep_suitable
from cod3s.decode.models import Models
from cod3s.decode.plausibility import Judge
from cod3s.decode.request import Batch
from cod3s.decode.rerank import decide_auto
from cod3s.decode.sentences import (
    Bins,
    Candidate,
    add_to_bins,
    judge_recalled,
    rank_sentences,
    recall_answers,
    write_sentences,
)
from cod3s.decode.signatures import choose_signatures, with_bins
from cod3s.records import Answer, AnswerMade, ChosenSignature, Event, SignaturesChosen, StageStarted
from cod3s.signatures.signer import Signer
from cod3s.unsuitable import is_sensitive

_SENSITIVE = 0.55  # the least plausibility of an answer to a sensitive source: a misplaced one hurts
_AT_LEAST = 3  # answers are shown even if they are doubtful, unless the source is sensitive
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
    """The answers to each source: plausible known ones, and the best of the bins that stage 1 chose."""
    choices = [AnswerChoice(batch, position, signer, judge) for position in range(len(batch.sources))]
    glanced = recall_answers(batch, judge)
    seen = _take_known(models, batch, choices, glanced, batch.config.sure)
    recalled = judge_recalled(batch, judge, _left(choices, glanced))
    judged = _take_known(models, batch, choices, recalled, batch.config.likely)
    known = [[*first, *more] for first, more in zip(seen, judged, strict=True)]
    if all(choice.has_all for choice in choices):
        return known
    chosen = choose_signatures(models, batch, [choice.answered for choice in choices], signer)
    bins = rank_sentences(models, batch, write_sentences(models, batch, chosen, judge), judge)
    rows = [
        [*known[position], *choice.answers(chosen[position], bins[position], recalled[position])]
        for position, choice in enumerate(choices)
    ]
    for choice in choices:
        choice.add_remarks()
    return rows


def stream_two_stages(
    models: Models, batch: Batch, signer: Signer | None, judge: Judge | None, group: int
) -> Iterator[Event]:
    """The same for a batch of one source, each group of bins as soon as it is written, with its stages."""
    config = batch.config
    choice = AnswerChoice(batch, 0, signer, judge)
    places = count()
    if config.recalls:
        yield StageStarted("recalling answers")
    glanced = recall_answers(batch, judge)
    (known,) = _take_known(models, batch, [choice], glanced, config.sure)
    yield from _events(known, places)
    if choice.has_all:
        return
    models.signature(batch.relation)  # opens the model, before its first stage
    (recalled,) = judge_recalled(batch, judge, _left([choice], glanced))
    (known,) = _take_known(models, batch, [choice], [recalled], config.likely)
    yield from _events(known, places)
    if choice.has_all:
        return
    yield StageStarted("choosing bins")
    (chosen,) = choose_signatures(models, batch, [choice.answered], signer)
    missing = config.k - len(choice.answered)
    spare = batch.wanted[0] is None and len(chosen) > missing  # which bins give answers is known at the end
    if not spare:
        yield SignaturesChosen(tuple(chosen))
    alone = config.pool == "off" and not config.recalls  # a bin's sentences do not depend on other bins
    in_order = config.search == "beam" and config.bins == config.k and alone
    together = group if in_order else max(1, len(chosen))
    for start in range(0, len(chosen), together):
        signatures = chosen[start : start + together]
        yield StageStarted("writing", len(signatures))
        written = write_sentences(models, batch, [signatures], judge)
        yield StageStarted("choosing answers")
        (bins,) = rank_sentences(models, batch, written, judge)
        answers = choice.answers(signatures, bins, recalled)
        if spare:
            bins_by_signature = {bin.signature: bin for bin in chosen}
            answered = dict.fromkeys(answer.signature for answer in answers)
            yield SignaturesChosen(tuple(bins_by_signature[signature] for signature in answered))
        yield from (AnswerMade(next(places), answer) for answer in answers)
    choice.add_remarks()


def _events(known: Sequence[Answer], places: Iterator[int]) -> Iterator[Event]:
    if known:
        bins = [ChosenSignature(answer.signature, count=answer.count, medoid=answer.medoid) for answer in known]
        yield SignaturesChosen(tuple(bins))
        yield from (AnswerMade(next(places), answer) for answer in known)


def _left(choices: Sequence["AnswerChoice"], recalled: Sequence[Sequence[Candidate]]) -> list[Sequence[Candidate]]:
    """The recalled candidates that have to be judged: those of sources that lack answers, and not taken yet."""
    return [
        [] if choice.has_all else choice.untaken(candidates)
        for choice, candidates in zip(choices, recalled, strict=True)
    ]


def _take_known(
    models: Models,
    batch: Batch,
    choices: Sequence["AnswerChoice"],
    recalled: Sequence[Sequence[Candidate]],
    least: float,
) -> list[list[Answer]]:
    """For each source, the recalled answers of at least this plausibility that are taken before any is written."""
    rows = [choice.take_known(candidates, least) for choice, candidates in zip(choices, recalled, strict=True)]
    bins = with_bins(models, batch, [[ChosenSignature(candidate.realised) for candidate in row] for row in rows])
    return [
        [_make_answer(signature, candidate) for signature, candidate in zip(*row, strict=True)]
        for row in zip(bins, rows, strict=True)
    ]


class AnswerChoice:
    """Chooses the answers to one source, some bins at a time, and counts what was left out."""

    def __init__(self, batch: Batch, position: int, signer: Signer | None, judge: Judge | None) -> None:
        config = self._config = batch.config
        self._text, self._source = batch.texts[position], batch.sources[position]
        self._remarks, self._signer = batch.remarks[position], signer
        self._bins_were_named = batch.wanted[position] is not None
        critic = judge.critic if judge and config.drop else None
        recalls = config.recalls and not self._bins_were_named
        self._floor, self._least = critic.floor if critic else 0.0, _AT_LEAST
        self._written_floor = max(self._floor, critic.written_floor) if critic and recalls else self._floor
        if critic and not config.unfiltered and is_sensitive(self._text):
            self._floor = self._written_floor = max(self._written_floor, _SENSITIVE)
            self._least = 0
        self._given = 0
        self._taken = Taken()
        self.answered: list[str] = []
        """The signatures of the bins that gave answers."""
        self._bins = self._unsuitable = self._implausible = 0

    @property
    def has_all(self) -> bool:
        """Whether the source has k answers, and nobody asked for certain bins."""
        return not self._bins_were_named and len(self.answered) >= self._config.k

    def untaken(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates whose texts are not among the answers."""
        return [candidate for candidate in candidates if candidate not in self._taken]

    def take_known(self, recalled: Sequence[Candidate], least: float) -> list[Candidate]:
        """Recalled answers that are plausible enough and lie apart; each answers in the bin that it is in."""
        if self._config.per_bin > 1:
            return []
        least = max(least, self._floor)
        plausible = [candidate for candidate in recalled if (candidate.plausibility or 0.0) >= least]
        suitable = keep_suitable(self._config, self._text, plausible)
        chosen = choose_known(self._config, self._source, suitable, self._taken, self.answered)
        self.answered += [candidate.realised for candidate in chosen]
        self._bins += len(chosen)
        self._given += len(chosen)
        return chosen

    def answers(
        self, chosen: Sequence[ChosenSignature], bins: Bins, recalled: Sequence[Candidate] = ()
    ) -> list[Answer]:
        """The answers from these bins: suitable, different from the answers before, and plausible.

        Recalled ones join the bins that are nearest to them.
        """
        signatures = [signature.signature for signature in chosen]
        offered = add_to_bins(recalled, signatures, bins)
        suitable = [keep_suitable(self._config, self._text, candidates) for candidates in offered]
        most = None if self._bins_were_named else self._config.k - len(self.answered)
        rows = choose_answers(self._config, self._source, signatures, suitable, self._taken, self._signer, most)
        self.answered += [signatures[number] for number in rows]
        self._bins += len(bins)
        self._unsuitable += sum(
            bool(before) and not after for before, after in zip(offered, suitable, strict=True)
        )
        pairs = [(chosen[number], answer) for number, answers in rows.items() for answer in answers]
        shown = self._worth_showing([candidate for _, candidate in pairs])
        self._implausible += len(pairs) - len(shown)
        self._given += len(shown)
        return [_make_answer(*pairs[number]) for number in shown]

    def _worth_showing(self, candidates: Sequence[Candidate]) -> list[int]:
        """Which answers are plausible enough, and the best of the others if hardly any are, in order."""
        plausible = [(candidate.plausibility or 0.0) >= self._floor_of(candidate) for candidate in candidates]
        best = sorted(
            range(len(candidates)), key=lambda n: (not plausible[n], -(candidates[n].plausibility or 0.0))
        )
        return sorted(best[: max(sum(plausible), self._least - self._given)])

    def _floor_of(self, candidate: Candidate) -> float:
        return self._floor if candidate.known_for else self._written_floor

    def add_remarks(self) -> None:
        """Say how many bins gave no answer, and why, and how many answers were implausible."""
        config, remarks = self._config, self._remarks
        if self._unsuitable:
            remarks.append(f"{self._unsuitable} of {self._bins} bins had no sentence {SUITABLE}")
        wanted = self._bins if self._bins_were_named else min(config.k, self._bins)
        if (empty := wanted - len(self.answered) - self._unsuitable) > 0:
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
