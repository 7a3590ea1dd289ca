"""The generator: a bundle in, then sources in and k answers each out. The stages in order, top to bottom."""

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
from cod3s.decode.check import Checker, open_checker
from cod3s.decode.choice import Taken
from cod3s.decode.chooser import SignatureChooser
from cod3s.decode.config import DEFAULT, ONE_STAGE, DecodeConfig
from cod3s.decode.players import Players, open_players
from cod3s.decode.sentences import Candidate
from cod3s.decode.sources import Given, check_source, in_batches
from cod3s.decode.systems import COD3S, SENTENCES, SIGNED_SENTENCES, TORCH, System, find_system
from cod3s.decode.task import Task, make_task
from cod3s.decode.writer import SentenceWriter
from cod3s.encode import Encoder
from cod3s.errors import BundleError, Cod3sError, SentenceError, UsageError
from cod3s.model.engine import COMPUTE
from cod3s.records import Answer, AnswerMade, AnswerSet, ChosenSignature, SignaturesChosen
from cod3s.signatures.signer import open_encoder

BATCH = 16  # sources decoded together: more make it no faster and hold more memory


def load(
    path: str | Path | None = None,
    *,
    encoder: Encoder | None = None,
    threads: int | None = None,
    compute: str = COMPUTE,
    remember: int = 0,
) -> "Generator":
    """The generator of the bundle at `path`; without one, of the bundle that ships with the package.

    `compute` is what the engine multiplies in: `float32`, or `int8` for speed where the processor is made for it.
    `remember` so many hypotheses a model (500 bytes each), and other settings on the same sources come quickly.
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
        compute: str = COMPUTE,
        remember: int = 0,
    ) -> None:
        self.folder, self._encoder = folder, encoder
        if threads is not None and threads < 1:
            raise UsageError(f"{threads} threads cannot decode", hint="choose 1 or more, or leave it out")
        self._workers = threads or os.cpu_count() or 1
        self._players: Players = open_players(folder, threads, compute, remember=remember)
        self._choose_signatures = SignatureChooser(folder, self._players)
        self._write_sentences = SentenceWriter(self._players, lambda: self.checker)

    @property
    def facts(self) -> BundleFacts:
        """What the bundle says of itself."""
        return self._players.facts

    def require_relation(self, relation: str) -> None:
        """An error that names the nearest relation unless the bundle has this one."""
        self._players.require_relation(relation)

    def require_system(self, system: str, relation: str, options: DecodeConfig = DEFAULT) -> None:
        """An error unless the bundle has the models that a system needs for a relation."""
        chosen, config = self._configured(relation, None, system, options)
        if chosen.kind == COD3S:
            self._rerankers(relation, config, given=chosen.oracle)
        elif chosen.kind != SIGNED_SENTENCES:
            self._players.plain(relation)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder that signed the bundle's training targets, or the bundle's own copy; opened when needed."""
        own = self._encoder or open_own_encoder(self.folder, self.facts, self._workers)
        return own or open_encoder(self.facts.encoder)

    @cached_property
    def checker(self) -> Checker:
        """Signs texts as the bundle does; opens the bundle's encoder when first asked for."""
        return open_checker(self.folder, self.encoder)

    @cached_property
    def _torch_systems(self) -> TorchSystems:
        return TorchSystems(self.folder, self._players)

    @overload
    def generate(
        self,
        source: str,
        relation: str,
        k: int | None = None,
        *,
        system: str = "cod3s",
        options: DecodeConfig = DEFAULT,
        signatures: Sequence[Given | None] | None = None,
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
        signatures: Sequence[Given | None] | None = None,
    ) -> list[AnswerSet]: ...

    def generate(
        self,
        source: str | list[str],
        relation: str,
        k: int | None = None,
        *,
        system: str = "cod3s",
        options: DecodeConfig = DEFAULT,
        signatures: Sequence[Given | None] | None = None,
    ) -> AnswerSet | list[AnswerSet]:
        """The answers to one source, or to each of a list. `k` comes before the k of `options`.

        `signatures` names, for each source, the bins to write in, in place of those that stage 1 would infer.
        """
        if isinstance(source, str) or not isinstance(source, Iterable):
            sources = [check_source(source)]
        else:
            sources = list(source)
        if signatures is not None and len(signatures) != len(sources):
            raise Cod3sError(f"{len(signatures)} lists of signatures were given for {len(sources)} sources")
        given: Sequence[Given | None] = signatures or [None] * len(sources)
        found = list(
            self.generate_many(zip(sources, given, strict=True), relation, k, system=system, options=options)
        )
        return found[0] if isinstance(source, str) else found

    def generate_many(
        self,
        sources: Iterable[str | tuple[str, Given | None]],
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
            task = make_task(block, relation, chosen, config)
            answers = self._two_stages(task) if chosen.kind == COD3S else self._one_stage(task)
            yield from (self._answer_set(task, place, own) for place, own in enumerate(answers))

    def stream(
        self,
        source: str,
        relation: str,
        k: int | None = None,
        *,
        system: str = "cod3s",
        options: DecodeConfig = DEFAULT,
        signatures: Given | None = None,
        group: int | None = None,
    ) -> Iterator[SignaturesChosen | AnswerMade | AnswerSet]:
        """The answers to one source as they are made: the chosen signatures, each answer, and the whole set.

        Sentences are written `group` bins at a time; by default one for each of the engine's workers, so that none
        is idle and the first answers come early (docs/decoding.md has figures). The set is the one that `generate`
        gives, scores but for rounding. What is drawn for a bin depends on the bins drawn before it, so samples are
        written all at once; systems of one stage find their answers in one search: of both, all come together.
        """
        chosen, config = self._configured(relation, k, system, options)
        task = make_task([(check_source(source), signatures)], relation, chosen, config)
        answers: list[Answer] = []
        size = self._workers if group is None else group
        if size < 1:
            raise UsageError(f"groups of {size} bins cannot be written", hint="choose 1 or more")
        for event in self._two_stages_by_group(task, size) if chosen.kind == COD3S else self._at_once(task):
            if isinstance(event, AnswerMade):
                answers.append(event.answer)
            yield event
        yield self._answer_set(task, 0, answers)

    def _configured(
        self, relation: str, k: int | None, system: str, options: DecodeConfig
    ) -> tuple[System, DecodeConfig]:
        self.require_relation(relation)
        chosen = find_system(system)
        return chosen, chosen.configure(options if k is None else options.with_values(k=k))

    def _two_stages(self, task: Task) -> list[list[Answer]]:
        """The method of the paper: infer signatures that lie apart, then write the best sentence of each."""
        task.config = self._resolved(task)
        chosen = self._choose_signatures(task)
        bins = self._write_sentences(task, chosen)
        picked = [
            self._write_sentences.pick(task.config, source, signatures, own, Taken())
            for source, signatures, own in zip(task.sources, chosen, bins, strict=True)
        ]
        for place, own in enumerate(picked):
            _note_empty_bins(task, place, own)
        return [_answers(signatures, own) for signatures, own in zip(chosen, picked, strict=True)]

    def _two_stages_by_group(self, task: Task, group: int) -> Iterator[SignaturesChosen | AnswerMade]:
        """The same for one source, each group of bins as soon as it is written."""
        task.config = self._resolved(task)
        (chosen,) = self._choose_signatures(task)
        yield SignaturesChosen(tuple(chosen))
        together = group if task.config.search == "beam" else max(1, len(chosen))
        picked: list[list[Candidate]] = []
        taken = Taken()
        answers = 0
        for start in range(0, len(chosen), together):
            signatures = chosen[start : start + together]
            (bins,) = self._write_sentences(task, [signatures])
            picked += self._write_sentences.pick(task.config, task.sources[0], signatures, bins, taken)
            for answer in _answers(signatures, picked[start:]):
                yield AnswerMade(answers, answer)
                answers += 1
        _note_empty_bins(task, 0, picked)

    def _one_stage(self, task: Task) -> list[list[Answer]]:
        if task.system.kind == SENTENCES:
            answers = write_plainly(self._players, task.relation, task.sources, task.config)
        elif task.system.kind == SIGNED_SENTENCES:
            answers = write_signed(self._players, task.relation, task.sources, task.config)
        else:
            answers = self._torch_systems.write(task.system.name, task.relation, task.sources, task.config)
        for own, remarks in zip(answers, task.remarks, strict=True):
            if len(own) < task.config.k:
                remarks.append(f"{len(own)} answers were found, {task.config.k} asked for")
        return [self._realised(own) for own in answers] if task.config.needs_encoder else answers

    def _at_once(self, task: Task) -> Iterator[SignaturesChosen | AnswerMade]:
        """The answers of one stage to one source; they come together, and from no bins."""
        (answers,) = self._one_stage(task)
        yield SignaturesChosen(())
        yield from (AnswerMade(place, answer) for place, answer in enumerate(answers))

    # What the stages share

    def _resolved(self, task: Task) -> DecodeConfig:
        """The options with `auto` decided; MMI that was asked for and cannot be had is an error."""
        config = task.config
        for name, (rule, lacking) in self._rerankers(task.relation, config, given=None not in task.given).items():
            if lacking:
                for remarks in task.remarks:
                    remarks.append(f"not reranked by MMI: the bundle has no model of {lacking}")
            config = config.with_values(**{name: rule})
        if config.faithful == "auto":
            config = config.with_values(faithful="weigh" if self.facts.own_encoder else "none")
        return config

    def _rerankers(self, relation: str, config: DecodeConfig, *, given: bool) -> dict[str, tuple[str, str]]:
        """How each stage ranks, where it is `mmi` or `auto`, with the model that it would need and lacks.

        `given` signatures are not ranked.
        """
        needs = {
            "rerank_signatures": (self._players.inverse, "p(source given signature)"),
            "rerank_sentences": (self._players.backward, "p(source given sentence)"),
        }
        found: dict[str, tuple[str, str]] = {}
        for name, (find, what) in needs.items():
            asked = getattr(config, name)
            if asked not in ("auto", "mmi"):
                continue
            if given and name == "rerank_signatures":
                found[name] = ("none", "")
            elif find(relation) is not None:
                found[name] = ("mmi", "")
            elif asked == "auto":
                found[name] = ("none", what)
            else:
                raise BundleError(
                    f"MMI needs {what}, and the bundle {self.facts.name} has no model of it for {relation!r}",
                    hint=f"choose none for {name.replace('_', ' ')}, or train the inverse relation too",
                )
        return found

    def _answer_set(self, task: Task, place: int, answers: Sequence[Answer]) -> AnswerSet:
        """What a user gets for one source: its answers, with what made them and what there is to remark."""
        self._note_cut(task, place)
        return AnswerSet(
            task.texts[place],
            task.relation,
            task.system.name,
            {"bundle": self.facts.name, "version": __version__, **_settings(task)},
            tuple(answers),
            tuple(task.remarks[place]),
        )

    def _note_cut(self, task: Task, place: int) -> None:
        plain = task.system.kind in (SENTENCES, TORCH)
        engine = (self._players.plain if plain else self._players.sentence)(task.relation).engine
        if engine.cuts(task.sources[place]):
            task.remarks[place].append("the source is longer than the model reads: its end was left out")

    def _realised(self, answers: Sequence[Answer]) -> list[Answer]:
        signed = self.checker.sign([answer.text for answer in answers])
        return [replace(answer, realised=realised) for answer, realised in zip(answers, signed, strict=True)]

    # Short forms

    def effects(self, source: str, k: int | None = None, *, options: DecodeConfig = DEFAULT) -> AnswerSet:
        """The answers of the relation `effect`: what may follow from the source."""
        return self.generate(source, "effect", k, options=options)

    def causes(self, source: str, k: int | None = None, *, options: DecodeConfig = DEFAULT) -> AnswerSet:
        """The answers of the relation `cause`: what the source may follow from."""
        return self.generate(source, "cause", k, options=options)

    def __repr__(self) -> str:
        relations = ", ".join(self.facts.models)
        return f"Generator(bundle {self.facts.name!r}, relations {relations}, {self.facts.bits} bits)"


def _note_empty_bins(task: Task, place: int, picked: Sequence[Sequence[Candidate]]) -> None:
    if empty := sum(not own for own in picked):
        why = "faithful or new" if task.config.faithful == "filter" else "new"
        task.remarks[place].append(f"{empty} of {len(picked)} bins had no sentence that was {why}")


def _settings(task: Task) -> dict[str, str | int | float | bool | None]:
    """The options that had a part in the answers."""
    values = asdict(task.config)
    return values if task.system.kind == COD3S else {name: values[name] for name in ONE_STAGE}


def _answers(chosen: Sequence[ChosenSignature], picked: Sequence[Sequence[Candidate]]) -> list[Answer]:
    return [_answer(signature, one) for signature, own in zip(chosen, picked, strict=True) for one in own]


def _answer(signature: ChosenSignature, one: Candidate) -> Answer:
    return Answer(
        text=one.text,
        score=one.score,
        forward=one.forward,
        backward=one.backward,
        signature=signature.signature,
        signature_rank=signature.rank,
        signature_score=signature.score,
        signature_forward=signature.forward,
        signature_backward=signature.backward,
        count=signature.count,
        medoid=signature.medoid,
        realised=one.realised,
        hamming=one.hamming,
    )
