"""The generator: opens a bundle and answers sources, one stage after the other."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import overload

from cod3s import __version__
from cod3s.bundle import BundleFacts, default_bundle, open_own_encoder
from cod3s.decode.baselines.plain import write_plainly, write_signed
from cod3s.decode.baselines.torch_systems import TorchSystems
from cod3s.decode.choice import Taken, choose_answers, keep_suitable
from cod3s.decode.config import DEFAULT, ONE_STAGE, DecodeConfig
from cod3s.decode.models import AUTO, BundleModels, Models, open_models
from cod3s.decode.plausibility import Judge, Pair, open_judge
from cod3s.decode.request import Batch, WantedSignatures, check_source, in_batches, make_batch
from cod3s.decode.rerank import decide_auto
from cod3s.decode.sentences import Bins, Candidate, write_sentences
from cod3s.decode.signatures import choose_signatures
from cod3s.decode.systems import COD3S, SENTENCES, SIGNED_SENTENCES, TORCH, System, find_system
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError, SentenceError, UsageError
from cod3s.records import Answer, AnswerMade, AnswerSet, ChosenSignature, SignaturesChosen
from cod3s.signatures import load_code
from cod3s.signatures.signer import Signer, open_encoder

_FIT = "fit to be shown (the option unfiltered gives them, too)"
BATCH = 16  # sources decoded together: more are not faster and take more memory


def load(
    path: str | Path | None = None,
    *,
    encoder: Encoder | None = None,
    threads: int | None = None,
    compute: str = AUTO,
    remember: int = 0,
) -> "Generator":
    """The generator of the bundle at `path`; without one, of the bundle that ships with the package.

    `compute` is what the engine multiplies in: `float32`, `int8`, or `auto`, which is int8 for language models,
    where it is faster, and float32 for the small seq2seq models.
    `remember` is how many hypotheses each model keeps (500 bytes each), which speeds up other settings on the same
    sources.
    """
    folder = default_bundle() if path is None else Path(path)
    return Generator(folder, encoder=encoder, threads=threads, compute=compute, remember=remember)


class Generator:
    """Answers from one bundle. Engines are opened when first needed; safe to call from several threads."""

    def __init__(
        self,
        folder: Path,
        *,
        encoder: Encoder | None = None,
        threads: int | None = None,
        compute: str = AUTO,
        remember: int = 0,
    ) -> None:
        self.folder, self._encoder = folder, encoder
        if threads is not None and threads < 1:
            raise UsageError(f"{threads} threads cannot decode", hint="choose 1 or more, or leave it out")
        self._workers = threads or os.cpu_count() or 1
        self._models: BundleModels = open_models(folder, threads, compute, remember=remember)

    @property
    def facts(self) -> BundleFacts:
        """What the bundle says about itself."""
        return self._models.facts

    @property
    def models(self) -> BundleModels:
        """The models of the bundle, by relation and role."""
        return self._models

    def require_relation(self, relation: str) -> None:
        """An error that suggests the nearest relation unless the bundle has this one."""
        self._models.require_relation(relation)

    def require_system(self, system: str, relation: str, options: DecodeConfig = DEFAULT) -> None:
        """An error unless the bundle has the models that a system needs for a relation."""
        chosen, config = self._configured(relation, None, system, options)
        if chosen.kind == COD3S:
            decide_auto(self._models, relation, config, signatures_wanted=chosen.oracle)
        elif chosen.kind != SIGNED_SENTENCES:
            self._models.plain(relation)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that signed the bundle's training targets, or the bundle's own copy; opened when needed."""
        embedded = self._encoder or open_own_encoder(self.folder, self.facts, self._workers)
        return embedded or open_encoder(self.facts.encoder)

    @cached_property
    def signer(self) -> Signer:
        """Signs texts as the bundle's training targets were signed; opens the encoder when first asked for."""
        code, _ = load_code(self.folder / "code")
        return Signer(self.encoder, code)

    @cached_property
    def judge(self) -> Judge:
        """The bundle's critic, ready to judge; an error if the bundle has none."""
        return open_judge(self.folder, self.facts, self._models, self.signer)

    @cached_property
    def _torch_systems(self) -> TorchSystems:
        return TorchSystems(self._models)

    @overload
    def generate(
        self,
        source: str,
        relation: str,
        k: int | None = None,
        *,
        system: str = "cod3s",
        options: DecodeConfig = DEFAULT,
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
        options: DecodeConfig = DEFAULT,
        signatures: Sequence[WantedSignatures] | None = None,
    ) -> list[AnswerSet]: ...

    def generate(
        self,
        source: str | list[str],
        relation: str,
        k: int | None = None,
        *,
        system: str = "cod3s",
        options: DecodeConfig = DEFAULT,
        signatures: Sequence[WantedSignatures] | None = None,
    ) -> AnswerSet | list[AnswerSet]:
        """The answers to one source, or to each source of a list. `k` overrides the k of `options`.

        `signatures` names, for each source, the bins to write in, in place of those that stage 1 would infer.
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
        options: DecodeConfig = DEFAULT,
        batch: int = BATCH,
    ) -> Iterator[AnswerSet]:
        """The answers to each source, in order, decoded `batch` at a time as they are asked for.

        A source may come with the signatures to write in. Memory does not grow with the number of sources. If one
        cannot be read, the error names it, after the answers to all before it.
        """
        chosen, config = self._configured(relation, k, system, options)
        if isinstance(sources, str):
            raise SentenceError("one source was given where many are needed", hint="use generate, or give a list")
        if batch < 1:
            raise UsageError(f"batches of {batch} sources cannot be decoded", hint="choose 1 or more")
        for block in in_batches(sources, batch):
            asked = make_batch(block, relation, chosen, config)
            if chosen.kind == COD3S:
                asked = with_auto_decided(self._models, asked)
                rows = answer_in_two_stages(self._models, asked, *self._helpers(asked.config))
            else:
                rows = self._answer_in_one_stage(asked)
            yield from (self._answer_set(asked, position, answers) for position, answers in enumerate(rows))

    def stream(
        self,
        source: str,
        relation: str,
        k: int | None = None,
        *,
        system: str = "cod3s",
        options: DecodeConfig = DEFAULT,
        signatures: WantedSignatures = None,
        group: int | None = None,
    ) -> Iterator[SignaturesChosen | AnswerMade | AnswerSet]:
        """The answers to one source as they are made: the chosen signatures, each answer, and the whole set.

        Sentences are written `group` bins at a time; by default one bin per worker of the engine, so that none is
        idle and the first answers come early (docs/decoding.md has figures). The set equals the one that
        `generate` gives, up to rounding of scores. Samples for a bin depend on the bins drawn before it, and
        systems of one stage find all answers in one search: in both cases all answers come together.
        """
        chosen, config = self._configured(relation, k, system, options)
        asked = make_batch([(check_source(source), signatures)], relation, chosen, config)
        size = self._workers if group is None else group
        if size < 1:
            raise UsageError(f"groups of {size} bins cannot be written", hint="choose 1 or more")
        if chosen.kind == COD3S:
            asked = with_auto_decided(self._models, asked)
            signer, judge = self._helpers(asked.config)
            events = stream_two_stages(self._models, asked, signer, judge, size)
        else:
            events = self._stream_one_stage(asked)
        answers: list[Answer] = []
        for event in events:
            if isinstance(event, AnswerMade):
                answers.append(event.answer)
            yield event
        yield self._answer_set(asked, 0, answers)

    def _configured(
        self, relation: str, k: int | None, system: str, options: DecodeConfig
    ) -> tuple[System, DecodeConfig]:
        self.require_relation(relation)
        chosen = find_system(system)
        return chosen, chosen.configure(options if k is None else options.with_values(k=k))

    def _helpers(self, config: DecodeConfig) -> tuple[Signer | None, Judge | None]:
        """What signs and what judges the candidates, where the options ask for it."""
        signer = self.signer if config.needs_encoder else None
        return signer, self.judge if config.rerank_sentences == "critic" else None

    def _answer_in_one_stage(self, batch: Batch) -> list[list[Answer]]:
        if batch.system.kind == SENTENCES:
            rows = write_plainly(self._models, batch.relation, batch.sources, batch.config)
        elif batch.system.kind == SIGNED_SENTENCES:
            rows = write_signed(self._models, batch.relation, batch.sources, batch.config)
        else:
            rows = self._torch_systems.write(batch.system.name, batch.relation, batch.sources, batch.config)
        rows = [_best_suitable(batch, position, answers) for position, answers in enumerate(rows)]
        return [self._realised(answers) for answers in rows] if batch.config.needs_encoder else rows

    def _stream_one_stage(self, batch: Batch) -> Iterator[SignaturesChosen | AnswerMade]:
        """The answers of one stage to one source, all together and from no bins."""
        (answers,) = self._answer_in_one_stage(batch)
        yield SignaturesChosen(())
        yield from (AnswerMade(number, answer) for number, answer in enumerate(answers))

    def _answer_set(self, batch: Batch, position: int, answers: Sequence[Answer]) -> AnswerSet:
        one_sentence = batch.system.kind in (SENTENCES, TORCH)
        model = (self._models.plain if one_sentence else self._models.sentence)(batch.relation)
        if model.engine.cuts(batch.sources[position]):
            batch.remarks[position].append("the source is longer than the model reads: its end was left out")
        return make_answer_set(batch, position, answers, bundle=self.facts.name)

    def _realised(self, answers: Sequence[Answer]) -> list[Answer]:
        signatures = self.signer.signatures([answer.text for answer in answers])
        return [replace(answer, realised=realised) for answer, realised in zip(answers, signatures, strict=True)]

    # Short forms

    def effects(self, source: str, k: int | None = None, *, options: DecodeConfig = DEFAULT) -> AnswerSet:
        """The answers of the relation `effect`: what may follow from the source."""
        return self.generate(source, "effect", k, options=options)

    def causes(self, source: str, k: int | None = None, *, options: DecodeConfig = DEFAULT) -> AnswerSet:
        """The answers of the relation `cause`: what the source may follow from."""
        return self.generate(source, "cause", k, options=options)

    def plausibility(self, source: str, relation: str, targets: Sequence[str]) -> list[float]:
        """How plausible each target is as an answer to the source, from 0 to 1, by the bundle's critic."""
        self.require_relation(relation)
        source = check_source(source)
        pairs = [Pair(relation, source, check_source(target)) for target in targets]
        probabilities: list[float] = self.judge(pairs).tolist()
        return probabilities

    def __repr__(self) -> str:
        relations = ", ".join(self.facts.models)
        return f"Generator(bundle {self.facts.name!r}, relations {relations}, {self.facts.bits} bits)"


def with_auto_decided(models: Models, batch: Batch) -> Batch:
    """The batch with every `auto` among its options decided; remarks say what the models do not allow."""
    config, remarks = decide_auto(models, batch.relation, batch.config, signatures_wanted=None not in batch.wanted)
    for row in batch.remarks:
        row.extend(remarks)
    return replace(batch, config=config)


def answer_in_two_stages(
    models: Models, batch: Batch, signer: Signer | None, judge: Judge | None = None
) -> list[list[Answer]]:
    """The method of the paper: infer signatures that lie apart, then write the best sentence in each bin."""
    chosen = choose_signatures(models, batch)
    bins = write_sentences(models, batch, chosen, judge)
    rows: list[list[Answer]] = []
    for position, signatures in enumerate(chosen):
        suitable = _keep_suitable(batch, position, bins[position])
        candidates = _choose(batch, position, signatures, suitable, Taken(), signer)
        _note_empty_bins(batch, position, bins[position], suitable, candidates)
        rows.append(_make_answers(signatures, _drop_implausible(batch, position, candidates, judge)))
    return rows


def stream_two_stages(
    models: Models, batch: Batch, signer: Signer | None, judge: Judge | None, group: int
) -> Iterator[SignaturesChosen | AnswerMade]:
    """The same for a batch of one source, each group of bins as soon as it is written."""
    (chosen,) = choose_signatures(models, batch)
    config = batch.config
    spare = batch.wanted[0] is None and len(chosen) > config.k  # which bins give answers is known only at the end
    if not spare:
        yield SignaturesChosen(tuple(chosen))
    in_order = config.search == "beam" and config.bins == config.k and config.pool == "off"
    together = group if in_order else max(1, len(chosen))
    written: Bins = []
    suitable: Bins = []
    candidates: Bins = []
    taken = Taken()
    answers = 0
    for start in range(0, len(chosen), together):
        signatures = chosen[start : start + together]
        (bins,) = write_sentences(models, batch, [signatures], judge)
        written += bins
        suitable += _keep_suitable(batch, 0, bins)
        candidates += _choose(batch, 0, signatures, suitable[start:], taken, signer)
        shown = _without_implausible(candidates[start:], config, judge)
        if spare:
            yield SignaturesChosen(tuple(bin for bin, row in zip(chosen, shown, strict=True) if row))
        for answer in _make_answers(signatures, shown):
            yield AnswerMade(answers, answer)
            answers += 1
    _note_empty_bins(batch, 0, written, suitable, candidates)
    _drop_implausible(batch, 0, candidates, judge)  # only for its remark


def make_answer_set(batch: Batch, position: int, answers: Sequence[Answer], **facts: str) -> AnswerSet:
    """What a user gets for one source: its answers, the settings that had a part in them, and remarks."""
    values = asdict(batch.config)
    settings = values if batch.system.kind == COD3S else {name: values[name] for name in ONE_STAGE}
    return AnswerSet(
        batch.texts[position],
        batch.relation,
        batch.system.name,
        {**facts, "version": __version__, **settings},
        tuple(answers),
        tuple(batch.remarks[position]),
    )


def _choose(
    batch: Batch,
    position: int,
    chosen: Sequence[ChosenSignature],
    bins: Bins,
    taken: Taken,
    signer: Signer | None,
) -> Bins:
    signatures = [signature.signature for signature in chosen]
    most = batch.config.k if batch.wanted[position] is None else None
    return choose_answers(batch.config, batch.sources[position], signatures, bins, taken, signer, most)


def _keep_suitable(batch: Batch, position: int, bins: Bins) -> Bins:
    return [keep_suitable(batch.config, batch.texts[position], candidates) for candidates in bins]


def _note_empty_bins(batch: Batch, position: int, written: Bins, suitable: Bins, chosen: Bins) -> None:
    """Say how many bins give no answer, and why: from what was written to what was suitable and then chosen."""
    remarks = batch.remarks[position]
    if unsuitable := sum(bool(before) and not after for before, after in zip(written, suitable, strict=True)):
        remarks.append(f"{unsuitable} of {len(written)} bins had no sentence {_FIT}")
    wanted = min(batch.config.k, len(chosen)) if batch.wanted[position] is None else len(chosen)
    if (empty := wanted - sum(map(bool, chosen)) - unsuitable) > 0:
        why = "faithful or new" if batch.config.faithful == "filter" else "new"
        remarks.append(f"{empty} of {len(chosen)} bins had no sentence that was {why}")


def _best_suitable(batch: Batch, position: int, written: Sequence[Answer]) -> list[Answer]:
    """The first k answers of one stage that may be shown."""
    suitable = keep_suitable(batch.config, batch.texts[position], written)
    if len(suitable) < batch.config.k:
        remarks = batch.remarks[position]
        remarks.append(f"{len(suitable)} answers were found, {batch.config.k} asked for")
        if len(suitable) < len(written):
            remarks.append(f"{len(written) - len(suitable)} of {len(written)} answers were not {_FIT}")
    return suitable[: batch.config.k]


def _drop_implausible(batch: Batch, position: int, bins: Bins, judge: Judge | None) -> Bins:
    """The candidates that are worth showing; a remark says how many were not."""
    kept = _without_implausible(bins, batch.config, judge)
    if dropped := sum(map(len, bins)) - sum(map(len, kept)):
        batch.remarks[position].append(f"left out {dropped} implausible answers; --all shows them")
    return kept


def _without_implausible(bins: Bins, config: DecodeConfig, judge: Judge | None) -> Bins:
    if judge is None or not config.drop:
        return bins
    floor = judge.critic.floor
    return [[candidate for candidate in row if (candidate.plausibility or 0.0) >= floor] for row in bins]


def _make_answers(chosen: Sequence[ChosenSignature], bins: Bins) -> list[Answer]:
    return [
        _make_answer(signature, candidate)
        for signature, candidates in zip(chosen, bins, strict=True)
        for candidate in candidates
    ]


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
