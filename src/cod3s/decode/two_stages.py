"""The method of the paper: infer signatures that lie apart, write sentences in their bins, choose the answers."""

from collections.abc import Iterator, Sequence
from itertools import count

from cod3s.critic.judge import Judge
from cod3s.decode.choose import SUITABLE, Taken, choose_answers, keep_suitable
from cod3s.decode.request import Batch
from cod3s.decode.sentences import Bins, Candidate, rank_sentences, write_sentences
from cod3s.decode.signatures import choose_signatures
from cod3s.models import Models
from cod3s.records import Answer, AnswerMade, ChosenSignature, Event, SignaturesChosen, StageStarted
from cod3s.signatures.signer import Signer

_AT_LEAST = 3  # answers are shown even if they are doubtful, unless the source needs care
_SHOW_ALL = "`cod3s generate --show-doubtful`, or show_doubtful=True, shows them"
_SHOW_SENSITIVE = "`cod3s generate --sensitive`, or sensitive=True, shows more"


def answer_in_two_stages(
    models: Models, batch: Batch, signer: Signer | None, judge: Judge | None = None, group: int | None = None
) -> Iterator[tuple[int, Event]]:
    """Each source's events with its position in the batch: the stages, the chosen signatures, the answers.

    With a `group`, that many bins are written at a time where the answers of a bin do not depend on other bins.
    """
    config = batch.config
    for position in range(len(batch.sources)):
        yield position, StageStarted("choosing bins")
    signatures = choose_signatures(models, batch)
    choices = [AnswerChoice(batch, position, signer, judge) for position in range(len(batch.sources))]
    places = [count() for _ in choices]
    spare = [wanted is None and len(row) > config.k for wanted, row in zip(batch.wanted, signatures, strict=True)]
    for position, row in enumerate(signatures):
        if not spare[position]:
            yield position, SignaturesChosen(tuple(row))
    most = max(map(len, signatures), default=0)
    step = group if group and config.answers_bin_by_bin and not any(spare) else max(1, most)
    for start in range(0, most, step):
        part = [row[start : start + step] for row in signatures]
        for position, row in enumerate(part):
            yield position, StageStarted("writing", len(row))
        written = write_sentences(models, batch, part, judge)
        for position in range(len(part)):
            yield position, StageStarted("choosing answers")
        ranked = rank_sentences(models, batch, written, judge)
        for position, (choice, row, candidates) in enumerate(zip(choices, part, ranked, strict=True)):
            answers = choice.answers(row, candidates)
            if spare[position]:  # only now is it known which bins give answers
                by_text = {signature.signature: signature for signature in row}
                answered = dict.fromkeys(answer.signature for answer in answers)
                yield position, SignaturesChosen(tuple(by_text[signature] for signature in answered))
            for answer in answers:
                yield position, AnswerMade(next(places[position]), answer)
    for choice in choices:
        choice.add_remarks()


class AnswerChoice:
    """Chooses the answers to one source, some bins at a time, and counts what was left out."""

    def __init__(self, batch: Batch, position: int, signer: Signer | None, judge: Judge | None) -> None:
        self._config, self._signer = batch.config, signer
        self._text, self._source = batch.texts[position], batch.sources[position]
        self._remarks = batch.remarks[position]
        self._bins_were_named = batch.wanted[position] is not None
        verdict = batch.verdicts[position]
        self._careful = verdict.action == "careful"
        floor = judge.critic.floor if judge and not batch.config.show_doubtful else 0.0
        self._floor, self._least = max(floor, verdict.floor), 0 if self._careful else _AT_LEAST
        self._taken = Taken()
        self._bins = self._answered = self._given = self._unsuitable = self._implausible = 0

    def answers(self, signatures: Sequence[ChosenSignature], bins: Bins) -> list[Answer]:
        """The answers from these bins: suitable, different from the answers before, and plausible."""
        suitable = [keep_suitable(self._config, self._text, row, careful=self._careful) for row in bins]
        wanted = [signature.signature for signature in signatures]
        most = None if self._bins_were_named else self._config.k - self._answered
        rows = choose_answers(self._config, self._source, wanted, suitable, self._taken, self._signer, most)
        self._answered += len(rows)
        self._bins += len(bins)
        self._unsuitable += sum(bool(before) and not after for before, after in zip(bins, suitable, strict=True))
        pairs = [(signatures[number], candidate) for number, row in rows.items() for candidate in row]
        shown = self._worth_showing([candidate for _, candidate in pairs])
        self._implausible += len(pairs) - len(shown)
        self._given += len(shown)
        return [_make_answer(*pairs[number]) for number in shown]

    def _worth_showing(self, candidates: Sequence[Candidate]) -> list[int]:
        """Which answers are plausible enough, and the best of the others if hardly any are, in order."""
        scores = [candidate.plausibility or 0.0 for candidate in candidates]
        best = sorted(range(len(scores)), key=lambda number: -scores[number])
        plausible = sum(score >= self._floor for score in scores)
        return sorted(best[: max(plausible, self._least - self._given)])

    def add_remarks(self) -> None:
        """Say how many bins gave no answer, and why, and how many answers were implausible."""
        if self._unsuitable:
            self._remarks.append(f"{self._unsuitable} of {self._bins} bins had no sentence {SUITABLE}")
        wanted = self._bins if self._bins_were_named else min(self._config.k, self._bins)
        if (empty := wanted - self._answered - self._unsuitable) > 0:
            why = "close enough to its bin, or new" if self._config.bin_fit == "filter" else "new"
            self._remarks.append(f"{empty} of {self._bins} bins had no sentence that was {why}")
        if self._implausible:
            noun = "answer" if self._implausible == 1 else "answers"
            show_all = _SHOW_SENSITIVE if self._careful else _SHOW_ALL
            self._remarks.append(f"left out {self._implausible} implausible {noun}; {show_all}")


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
    )
