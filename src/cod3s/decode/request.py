"""Check sources and cut them into the batches that go through the stages."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from cod3s import __version__
from cod3s.corpus.relations import CAUSE, EFFECT
from cod3s.decode.config import ONE_STAGE, DecodeConfig
from cod3s.decode.systems import COD3S, System
from cod3s.errors import SentenceError, UsageError
from cod3s.records import Answer, AnswerSet
from cod3s.text import clean, for_modelling
from cod3s.trust.gate import ANSWERED, Verdict
from cod3s.trust.statements import remarks_on

_OF_STATEMENTS = (CAUSE.name, EFFECT.name)
"""Relations with statements as sources; sources of other relations may be questions, or in any language."""
MAX_CHARACTERS = 10_000  # a longer source is a mistake, not a sentence

WantedSignatures = Sequence[str] | None
"""The signatures that a user wants for a source; None leaves them to stage 1."""


@dataclass(frozen=True)
class Batch:
    """Sources that are decoded together. The stages add to `remarks` what the user should know about a source."""

    relation: str
    system: System
    config: DecodeConfig
    texts: list[str]  # the user's sources, cleaned
    sources: list[str]  # the sources in the form that models read
    wanted: list[WantedSignatures]
    remarks: list[list[str]]
    verdicts: list[Verdict]  # of the gate, on each source

    def answered(self) -> tuple[list[int], "Batch"]:
        """The positions of the sources that are not refused, and the batch of those."""
        positions = [position for position, verdict in enumerate(self.verdicts) if verdict.action != "refuse"]
        part = replace(
            self,
            texts=[self.texts[position] for position in positions],
            sources=[self.sources[position] for position in positions],
            wanted=[self.wanted[position] for position in positions],
            remarks=[self.remarks[position] for position in positions],
            verdicts=[self.verdicts[position] for position in positions],
        )
        return positions, part

    def answer_set(self, position: int, answers: Sequence[Answer], **facts: str) -> AnswerSet:
        """The result for a source: its answers, the settings that affected them, and its remarks."""
        values = asdict(self.config)
        settings = values if self.system.kind == COD3S else {name: values[name] for name in ONE_STAGE}
        return AnswerSet(
            self.texts[position],
            self.relation,
            self.system.name,
            {**facts, "version": __version__, **settings},
            tuple(answers),
            tuple(self.remarks[position]),
        )


def make_batch(
    sources: Sequence[tuple[str, WantedSignatures]],
    relation: str,
    system: System,
    config: DecodeConfig,
    remarks: Sequence[str] = (),
    verdicts: Sequence[Verdict] | None = None,
) -> Batch:
    """The batch of these checked sources, which all have the `remarks`; one-stage systems take no signatures."""
    wanted = [signatures for _, signatures in sources]
    if system.kind != COD3S and any(signatures is not None for signatures in wanted):
        raise UsageError(
            f"{system.name} writes in one stage and takes no signatures",
            hint="choose a system that begins with cod3s",
        )
    texts = [text for text, _ in sources]
    verdicts = [ANSWERED] * len(texts) if verdicts is None else list(verdicts)
    return Batch(
        relation,
        system,
        config,
        texts,
        sources=[for_modelling(text) for text in texts],
        wanted=wanted,
        remarks=[
            [
                *(remarks_on(text) if relation in _OF_STATEMENTS else []),
                *([verdict.remark] if verdict.remark else []),
                *remarks,
            ]
            for text, verdict in zip(texts, verdicts, strict=True)
        ],
        verdicts=verdicts,
    )


def check_source(source: str) -> str:
    """The source as a single clean line; an error if it is empty, too long or not text."""
    if isinstance(source, str) and len(source) > MAX_CHARACTERS:
        raise SentenceError(
            f"the source has {len(source)} characters, but only {MAX_CHARACTERS} are allowed",
            hint="give a single sentence; use --input for a file with one sentence per line",
        )
    return clean(source)


def in_batches(
    sources: Iterable[str | tuple[str, WantedSignatures]], size: int
) -> Iterator[list[tuple[str, WantedSignatures]]]:
    """Checked sources with their signatures, `size` at a time; those before a bad source come before its error."""
    batch: list[tuple[str, WantedSignatures]] = []
    for number, entry in enumerate(sources, 1):
        source, signatures = entry if isinstance(entry, tuple) else (entry, None)
        try:
            batch.append((check_source(source), signatures))
        except SentenceError as error:
            if batch:
                yield batch
            raise SentenceError(f"source {number}: {error.message}", error.hint) from error
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
