"""The generator: a bundle in, then sources in and k answers each out. The stages in order, top to bottom."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import overload

from cod3s import __version__
from cod3s.bundle import BundleFacts, default_bundle
from cod3s.decode.baselines import write_plainly, write_signed
from cod3s.decode.check import Checker, keep_faithful, open_checker
from cod3s.decode.chooser import SignatureChooser
from cod3s.decode.config import DEFAULT, ONE_STAGE, DecodeConfig
from cod3s.decode.players import Players, open_players
from cod3s.decode.rerank import (
    rank,
    score_sentences_backward,
)
from cod3s.decode.sentences import Candidate, choose, write_sentences
from cod3s.decode.systems import COD3S, SENTENCES, SIGNED_SENTENCES, TORCH, System, find_system
from cod3s.decode.task import Given, Task
from cod3s.decode.torch_systems import TorchSystems
from cod3s.encode import Encoder
from cod3s.errors import BundleError, Cod3sError, SentenceError
from cod3s.records import Answer, AnswerSet, ChosenSignature
from cod3s.text import clean, for_modelling

MAX_CHARACTERS = 10_000  # of a source: what is longer is no sentence, and a mistake
BATCH = 16  # sources decoded together: more make it no faster and hold more memory


def load(
    path: str | Path | None = None, *, encoder: Encoder | None = None, threads: int | None = None
) -> "Generator":
    """The generator of the bundle at `path`; without one, of the bundle that ships with the package."""
    return Generator(default_bundle() if path is None else Path(path), encoder=encoder, threads=threads)


class Generator:
    """Answers from one bundle. Engines are opened when first needed; safe to call from several threads."""

    def __init__(self, folder: Path, *, encoder: Encoder | None = None, threads: int | None = None) -> None:
        self._folder, self._encoder = folder, encoder
        self._players: Players = open_players(folder, threads)
        self._choose_signatures = SignatureChooser(folder, self._players)

    @property
    def facts(self) -> BundleFacts:
        """What the bundle says of itself."""
        return self._players.facts

    @cached_property
    def checker(self) -> Checker:
        """Signs texts as the bundle does; opens the bundle's encoder when first asked for."""
        return open_checker(self._folder, self.facts.encoder, self._encoder)

    @cached_property
    def _torch_systems(self) -> TorchSystems:
        return TorchSystems(self._folder, self._players)

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
        sources = [source] if isinstance(source, str) else source
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

        A source may come with the signatures to write in. Memory does not grow with the number of sources.
        """
        self._players.require_relation(relation)
        chosen = find_system(system)
        config = chosen.configure(options if k is None else options.with_values(k=k))
        stream = iter(sources)
        while block := list(islice(stream, batch)):
            pairs = [(one, None) if isinstance(one, str) else one for one in block]
            yield from self._answer(pairs, relation, chosen, config)

    def _answer(
        self, pairs: Sequence[tuple[str, Given | None]], relation: str, system: System, config: DecodeConfig
    ) -> list[AnswerSet]:
        texts = [_checked(source) for source, _ in pairs]
        task = Task(
            relation,
            system,
            config,
            [for_modelling(text) for text in texts],
            [given for _, given in pairs],
            [[] for _ in pairs],
        )
        if system.kind == COD3S:
            task.config = self._resolved(task)
            answers = self._two_stages(task)
        else:
            answers = self._one_stage(task)
        self._note_cuts(task)
        settings = {"bundle": self.facts.name, "version": __version__, **_settings(task)}
        return [
            AnswerSet(text, relation, system.name, settings, tuple(own), tuple(remarks))
            for text, own, remarks in zip(texts, answers, task.remarks, strict=True)
        ]

    def _two_stages(self, task: Task) -> list[list[Answer]]:
        """The method of the paper: infer signatures that lie apart, then write the best sentence of each."""
        chosen = self._choose_signatures(task)
        bins = write_sentences(
            self._players.sentence(task.relation),
            self._players.vocabulary,
            task.sources,
            [[one.signature for one in own] for own in chosen],
            task.config,
        )
        bins = self._rerank_sentences(task, bins)
        bins = self._check(task, bins, chosen)
        return [
            self._answers(task, place, own, choose(candidates, task.config.per_bin))
            for place, (own, candidates) in enumerate(zip(chosen, bins, strict=True))
        ]

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

    def _rerank_sentences(self, task: Task, bins: list[list[list[Candidate]]]) -> list[list[list[Candidate]]]:
        """By MMI, with one backward call for all candidates of the batch."""
        if task.config.rerank_sentences != "mmi":
            return bins
        backward = self._players.backward(task.relation)
        assert backward is not None  # `_resolved` has looked
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

    def _check(
        self, task: Task, bins: list[list[list[Candidate]]], chosen: list[list[ChosenSignature]]
    ) -> list[list[list[Candidate]]]:
        """The candidates with their own signatures, ranked or filtered by them where that is asked for."""
        config = task.config
        if not config.needs_encoder:
            return bins
        if config.faithful == "none":  # only what is returned needs to be signed
            bins = [choose(own, config.per_bin) for own in bins]
        signed = [
            self.checker.realise(own, [one.signature for one in its])
            for own, its in zip(bins, chosen, strict=True)
        ]
        return [
            [keep_faithful(own, mode=config.faithful, within=config.faithful_within) for own in its]
            for its in signed
        ]

    def _answers(
        self, task: Task, place: int, chosen: Sequence[ChosenSignature], bins: Sequence[Sequence[Candidate]]
    ) -> list[Answer]:
        empty = sum(not own for own in bins)
        if empty:
            why = "faithful or new" if task.config.faithful == "filter" else "new"
            task.remarks[place].append(f"{empty} of {len(chosen)} bins had no sentence that was {why}")
        return [_answer(signature, one) for signature, own in zip(chosen, bins, strict=True) for one in own]

    # What the stages share

    def _resolved(self, task: Task) -> DecodeConfig:
        """The options with `auto` decided; MMI that was asked for and cannot be had is an error."""
        config, relation = task.config, task.relation
        needs = {
            "rerank_signatures": (self._players.inverse, "p(source given signature)"),
            "rerank_sentences": (self._players.backward, "p(source given sentence)"),
        }
        for name, (find, what) in needs.items():
            asked = getattr(config, name)
            if asked not in ("auto", "mmi"):
                continue
            if name == "rerank_signatures" and None not in task.given:  # there is nothing to rank
                config = config.with_values(rerank_signatures="none")
                continue
            there = find(relation) is not None
            if asked == "mmi" and not there:
                raise BundleError(
                    f"MMI needs {what}, and the bundle {self.facts.name} has no model of it for {relation!r}",
                    hint=f"choose none for {name.replace('_', ' ')}, or train the inverse relation too",
                )
            if not there:
                for remarks in task.remarks:
                    remarks.append(f"not reranked by MMI: the bundle has no model of {what}")
            config = config.with_values(**{name: "mmi" if there else "none"})
        return config

    def _note_cuts(self, task: Task) -> None:
        plain = task.system.kind in (SENTENCES, TORCH)
        engine = (self._players.plain if plain else self._players.sentence)(task.relation).engine
        for source, remarks in zip(task.sources, task.remarks, strict=True):
            if engine.cuts(source):
                remarks.append("the source is longer than the model reads: its end was left out")

    def _realised(self, answers: Sequence[Answer]) -> list[Answer]:
        signed = self.checker.sign([answer.text for answer in answers])
        return [replace(answer, realised=realised) for answer, realised in zip(answers, signed, strict=True)]


def _settings(task: Task) -> dict[str, str | int | float | bool | None]:
    """The options that had a part in the answers."""
    values = asdict(task.config)
    return values if task.system.kind == COD3S else {name: values[name] for name in ONE_STAGE}


def _checked(source: str) -> str:
    if len(source) > MAX_CHARACTERS:
        raise SentenceError(
            f"a source of {len(source)} characters was given, at most {MAX_CHARACTERS} are read",
            hint="give one sentence; a file with one a line goes to --input",
        )
    return clean(source)


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
