"""The generator: opens a bundle and answers sources."""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import overload

from cod3s.bundle import find_bundle, open_own_encoder
from cod3s.critic.judge import Judge, open_judge
from cod3s.critic.likelihoods import Pair
from cod3s.decode.config import DecodeConfig, defaults_of
from cod3s.decode.one_stage import answer_in_one_stage
from cod3s.decode.request import Batch, WantedSignatures, check_source, in_batches, make_batch
from cod3s.decode.systems import COD3S, CONSTRAINED, SIGNED_SENTENCES, System, find_system
from cod3s.decode.two_stages import answer_in_two_stages
from cod3s.decode.word_graph import open_word_graph, word_graph_path
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError, MissingExtraError, SentenceError, UsageError
from cod3s.models import AUTO, open_models
from cod3s.records import Answer, AnswerMade, AnswerSet, Event, StageStarted
from cod3s.signatures import load_code
from cod3s.signatures.signer import Signer, open_encoder
from cod3s.trust.gate import Gate, open_gate

BATCH = 16  # sources decoded together: more are not faster and take more memory


def load(
    path: str | Path | None = None,
    *,
    encoder: Encoder | None = None,
    threads: int | None = None,
    compute: str = AUTO,
    cache: int = 0,
) -> "Generator":
    """The generator of the bundle at `path` (a folder, or `hf:USER/NAME@REVISION`), or of the one in the package.

    `compute` is the number type of the engine: `float32`, `int8`, or `auto`, which is int8 for language models,
    where it is faster, and float32 for the small seq2seq models.
    `cache` is how many hypotheses each model keeps (500 bytes each), which speeds up trying other settings on
    the same sources.
    """
    folder = find_bundle(path)
    if find_spec("ctranslate2") is None:
        raise MissingExtraError(
            "this needs 'ctranslate2', which is not installed",
            hint=f"pip install 'cod3s[{'write' if path is None else 'engine'}]'",
        )
    return Generator(folder, encoder=encoder, threads=threads, compute=compute, cache=cache)


class Generator:
    """Answers from a bundle. Engines are opened when first needed; safe to call from several threads."""

    def __init__(
        self,
        folder: Path,
        *,
        encoder: Encoder | None = None,
        threads: int | None = None,
        compute: str = AUTO,
        cache: int = 0,
    ) -> None:
        self.folder, self._encoder = folder, encoder
        if threads is not None and threads < 1:
            raise UsageError(f"cannot decode with {threads} threads", hint="choose 1 or more, or leave it out")
        self._workers = threads or os.cpu_count() or 1
        self.models = open_models(folder, threads, compute, cache_size=cache)
        self.facts = self.models.facts  # what the bundle says about itself
        self.defaults = defaults_of(self.facts)  # the options of decoding where a call names none

    def require_relation(self, relation: str) -> None:
        """Raise an error that suggests the nearest relation, unless the bundle has this relation."""
        self.models.require_relation(relation)

    def require_system(self, system: str, relation: str, options: DecodeConfig | None = None) -> None:
        """Raise an error unless the bundle has the models that a system needs for a relation."""
        chosen, config = self._configured(relation, None, system, options)
        if chosen.kind == COD3S:
            config.resolve(self.models, relation, signatures_wanted=chosen.oracle)
        elif chosen.kind != SIGNED_SENTENCES:
            self.models.plain(relation)
        if chosen.kind == CONSTRAINED:
            open_word_graph(word_graph_path(self.folder, relation))

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that signed the training targets, or the bundle's copy of it; opened when needed."""
        embedded = self._encoder or open_own_encoder(self.folder, self.facts, self._workers)
        return embedded or open_encoder(self.facts.encoder)

    @cached_property
    def signer(self) -> Signer:
        """Signs texts as the bundle's training targets were signed; opens the encoder on first use."""
        code, _ = load_code(self.folder / "code")
        return Signer(self.encoder, code)

    @cached_property
    def gate(self) -> Gate | None:
        """The bundle's gate on sensitive sources, if it has one."""
        return open_gate(self.folder, self.facts.encoder)

    @cached_property
    def judge(self) -> Judge:
        """The bundle's critic, ready to judge; an error if the bundle has none."""
        return open_judge(self.folder, self.models, self.signer)

    @overload
    def generate(
        self,
        source: str,
        relation: str,
        k: int | None = None,
        *,
        system: str = "cod3s",
        options: DecodeConfig | None = None,
        signatures: Sequence[WantedSignatures] | None = None,
    ) -> AnswerSet: ...

    @overload
    def generate(
        self,
        source: list[str],
        relation: str,
        k: int | None = None,
        *,
        system: str = "cod3s",
        options: DecodeConfig | None = None,
        signatures: Sequence[WantedSignatures] | None = None,
    ) -> list[AnswerSet]: ...

    def generate(
        self,
        source: str | list[str],
        relation: str,
        k: int | None = None,
        *,
        system: str = "cod3s",
        options: DecodeConfig | None = None,
        signatures: Sequence[WantedSignatures] | None = None,
    ) -> AnswerSet | list[AnswerSet]:
        """The answers to a source, or to each source of a list. `k` overrides the k of `options`.

        Without `options`, the bundle's `defaults` hold; `defaults.with_values(beam=4)` changes some of them.
        `signatures` lists, for each source, the bins to write in instead of those that stage 1 would infer.
        """
        if isinstance(source, str) or not isinstance(source, Iterable):
            sources = [check_source(source)]
        else:
            sources = list(source)
        if signatures is not None and len(signatures) != len(sources):
            raise Cod3sError(f"{len(signatures)} lists of signatures were given for {len(sources)} sources")
        wanted: Sequence[WantedSignatures] = signatures or [None] * len(sources)
        sets = list(
            self.generate_many(zip(sources, wanted, strict=True), relation, k, system=system, options=options)
        )
        return sets[0] if isinstance(source, str) else sets

    def generate_many(
        self,
        sources: Iterable[str | tuple[str, WantedSignatures]],
        relation: str,
        k: int | None = None,
        *,
        system: str = "cod3s",
        options: DecodeConfig | None = None,
        batch: int = BATCH,
    ) -> Iterator[AnswerSet]:
        """The answers to each source, in order, decoded lazily, `batch` sources at a time.

        A source may come with the signatures to write in. Memory does not grow with the number of sources. If a
        source cannot be read, the answers to all sources before it come first, then an error that names it.
        """
        chosen, config = self._configured(relation, k, system, options)
        if isinstance(sources, str):
            raise SentenceError(
                "one source was given, but a list is needed", hint="use generate, or put it in a list"
            )
        if batch < 1:
            raise UsageError(f"batches of {batch} sources cannot be decoded", hint="choose 1 or more")
        for block in in_batches(sources, batch):
            asked = self._batch(block, relation, chosen, config)
            rows: list[list[Answer]] = [[] for _ in block]
            for position, event in self._events(asked):
                if isinstance(event, AnswerMade):
                    rows[position].append(event.answer)
            yield from (self._answer_set(asked, position, answers) for position, answers in enumerate(rows))

    def stream(
        self,
        source: str,
        relation: str,
        k: int | None = None,
        *,
        system: str = "cod3s",
        options: DecodeConfig | None = None,
        signatures: WantedSignatures = None,
        group: int | None = None,
        stages: bool = False,
    ) -> Iterator[Event]:
        """The answers to a source as they are made: the chosen signatures, each answer, and the whole set.

        Sentences are written `group` bins at a time; by default a bin per worker of the engine, so that none is
        idle and the first answers come early. The set equals what `generate` gives, up to rounding of scores.
        Answers come together at the end where they depend on each other: with spare bins or shared candidates
        (the default of a bundle with a critic, such as the one in the package),
        with samples, and from one-stage systems. With `stages`, a `StageStarted` comes before each stage.
        """
        chosen, config = self._configured(relation, k, system, options)
        asked = self._batch([(check_source(source), signatures)], relation, chosen, config)
        size = self._workers if group is None else group
        if size < 1:
            raise UsageError(f"groups of {size} bins cannot be written", hint="choose 1 or more")
        answers: list[Answer] = []
        for _, event in self._events(asked, size):
            if isinstance(event, AnswerMade):
                answers.append(event.answer)
            if stages or not isinstance(event, StageStarted):
                yield event
        yield self._answer_set(asked, 0, answers)

    def _events(self, batch: Batch, group: int | None = None) -> Iterator[tuple[int, Event]]:
        """What happens to each source of a batch, with its position; the loop behind `generate` and `stream`."""
        positions, answered = batch.answered()
        if not positions:
            return
        config = batch.config
        signer = self.signer if config.needs_encoder else None
        if batch.system.kind != COD3S:
            events = answer_in_one_stage(self.models, answered, signer)
        else:
            judge = self.judge if config.rerank_sentences == "critic" else None
            events = answer_in_two_stages(self.models, answered, signer, judge, group)
        for position, event in events:
            yield positions[position], event

    def _configured(
        self, relation: str, k: int | None, system: str, options: DecodeConfig | None
    ) -> tuple[System, DecodeConfig]:
        self.require_relation(relation)
        chosen, options = find_system(system), options or self.defaults
        return chosen, chosen.configure(options if k is None else options.with_values(k=k))

    def _batch(
        self,
        sources: Sequence[tuple[str, WantedSignatures]],
        relation: str,
        system: System,
        config: DecodeConfig,
    ) -> Batch:
        """The batch of these sources, with every `auto` among its options decided."""
        remarks: list[str] = []
        if system.kind == COD3S:
            wanted = None not in [signatures for _, signatures in sources]
            config, remarks = config.resolve(self.models, relation, signatures_wanted=wanted)
        verdicts = None
        if self.gate and not config.unfiltered:
            vectors = self.encoder.encode([text for text, _ in sources])
            verdicts = self.gate.judge(vectors, sensitive=config.sensitive, careful_floor=config.careful_floor)
        return make_batch(sources, relation, system, config, remarks, verdicts)

    def _answer_set(self, batch: Batch, position: int, answers: Sequence[Answer]) -> AnswerSet:
        signed = batch.system.kind in (COD3S, SIGNED_SENTENCES)
        model = (self.models.sentence if signed else self.models.plain)(batch.relation)
        if model.engine.cuts(batch.sources[position]):
            batch.remarks[position].append("the source is longer than the model can read: its end was left out")
        return batch.answer_set(position, answers, bundle=self.facts.name)

    # Short forms

    def effects(self, source: str, k: int | None = None, *, options: DecodeConfig | None = None) -> AnswerSet:
        """The answers of the relation `effect`: what may follow from the source."""
        return self.generate(source, "effect", k, options=options)

    def causes(self, source: str, k: int | None = None, *, options: DecodeConfig | None = None) -> AnswerSet:
        """The answers of the relation `cause`: what the source may follow from."""
        return self.generate(source, "cause", k, options=options)

    def plausibility(self, source: str, relation: str, targets: Sequence[str]) -> list[float]:
        """How plausible each target is as an answer to the source, from 0 to 1; the bundle's critic decides."""
        self.require_relation(relation)
        source = check_source(source)
        pairs = [Pair(relation, source, check_source(target)) for target in targets]
        probabilities: list[float] = self.judge(pairs).tolist()
        return probabilities

    def __repr__(self) -> str:
        relations = ", ".join(self.facts.models)
        return f"Generator(bundle {self.facts.name!r}, relations {relations}, {self.facts.bits} bits)"
