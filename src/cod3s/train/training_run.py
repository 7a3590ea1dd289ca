"""Train the models of a run: from a prepared corpus and a config to a run folder."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from statistics import mean
from time import monotonic
from typing import Any

from cod3s.corpus.manifest import Manifest, load_manifest, why_empty
from cod3s.errors import Cod3sError, UsageError, did_you_mean, require
from cod3s.io.disk import read_json, replaced_folder, write_json
from cod3s.io.lock import sole_writer
from cod3s.model.reader import open_reader
from cod3s.model.roles import VERDICT, all_tags
from cod3s.model.shape import SHAPES
from cod3s.signatures import load_code
from cod3s.tokens.vocabulary import SignatureTokens, Vocabulary
from cod3s.train.batches import TensorBatches, example_batches
from cod3s.train.config import TrainConfig
from cod3s.train.curves import Log, plot_curves
from cod3s.train.loop import Report, any_process, fit
from cod3s.train.pairs import PairTable, Rows, read_rows
from cod3s.train.run_folder import (
    FINISHED,
    PIECES,
    begin_run,
    clear_disk_errors,
    forget_run,
    has_learned,
    write_pieces,
)
from cod3s.train.starting_model import StartingModel
from cod3s.train.tasks import Examples, Task, role_task
from cod3s.train.validate import majority_bit_accuracy, validate
from cod3s.train.verdicts import verdict_task, verdicts_by_relation, wrong_tasks

Splits = Mapping[str, Mapping[str, Rows]]
"""The rows by split and relation."""


@dataclass(frozen=True)
class Member:
    """One model of a run: which relations and roles it plays."""

    name: str
    relations: tuple[str, ...]
    roles: tuple[str, ...]


def members(config: TrainConfig, relations: Sequence[str]) -> list[Member]:
    """One model for everything, or a model for each relation and role."""
    if config.layout == "shared":
        return [Member("shared", tuple(relations), config.roles)]
    return [Member(f"{relation}-{role}", (relation,), (role,)) for relation in relations for role in config.roles]


def train(
    corpus: Path,
    output: Path,
    config: TrainConfig,
    *,
    seconds: float | None = None,
    clock: Callable[[], float] = monotonic,
    resume: bool = False,
    report: Report = lambda *_: None,
) -> dict[str, dict[str, float]]:
    """Validation figures of each model of the run in `output` that was trained in `seconds` of `clock`.

    The first is always trained, for a step at least.
    """
    end = None if seconds is None else clock() + seconds
    manifest = load_manifest(corpus)
    if manifest.encoder is None:
        raise Cod3sError(f"the corpus {corpus} is not signed", hint="prepare it with an encoder")
    # Under torchrun every process comes through here: the first writes, the others wait for it.
    processes = require("accelerate", "train").PartialState(cpu=not require("torch", "train").cuda.is_available())
    is_new = not output.exists()
    figures: dict[str, dict[str, float]] = {}
    with sole_writer(output) if processes.is_main_process else nullcontext():
        if processes.is_main_process:
            begin_run(corpus, output, config, manifest, resume)
        try:
            with processes.main_process_first():
                run = _Run(corpus, output, config, manifest, processes, clock)
            for member in members(config, list(manifest.relations)):
                left = None if end is None else end - clock()
                if figures and left is not None and any_process(left <= 0, processes.device):
                    break
                figures[member.name] = run(member, left, resume, report)
        except Cod3sError:
            if processes.is_main_process and not has_learned(output):
                forget_run(output)
                with suppress(OSError):
                    output.rmdir() if is_new else None
            raise
    return figures


class _Run:
    """What the models of a run share: the vocabulary and the pairs."""

    def __init__(
        self,
        corpus: Path,
        output: Path,
        config: TrainConfig,
        manifest: Manifest,
        processes: Any,
        clock: Callable[[], float],
    ) -> None:
        self._output, self._config, self._processes, self._clock = output, config, processes, clock
        self._manifest = manifest
        self._shape = SHAPES[config.shape]
        self._inverses = {name: relation.inverse for name, relation in manifest.relations.items()}
        rows: Splits = {
            split: {relation: read_rows(corpus, relation, split).first(most) for relation in manifest.relations}
            for split, most in (("train", None), ("dev", config.validate_pairs))
        }
        _check_corpora(config, rows)
        self._majority = _majority_by_relation(rows)
        self._vocabulary = _open_vocabulary(output, config, manifest, rows)
        templates = {name: relation.template for name, relation in manifest.relations.items()}
        readers = {
            name: open_reader(self._shape, self._vocabulary, template) for name, template in templates.items()
        }
        self._readers = readers
        self._reader = next(iter(readers.values()))  # what an empty source is does not depend on relations
        self._start = StartingModel(
            config,
            self._vocabulary,
            templates,
            load_code(output / "code")[0],
            manifest.encoder or "",
            [text for part in rows["train"].values() for text in part.target],
        )
        self._tables = {
            "train": self._encode(rows["train"], config.corpora),
            "dev": self._encode(rows["dev"], {}),
        }
        backward = {
            inverse: rows["train"][relation].reversed()
            for relation, inverse in self._inverses.items()
            if config.backward and inverse in readers
        }
        self._backward = self._encode(backward, config.corpora)

    def __call__(self, member: Member, seconds: float | None, resume: bool, report: Report) -> dict[str, float]:
        folder = self._output / member.name
        if resume and (folder / FINISHED).exists():
            figures: dict[str, float] = read_json(folder / "figures.json")
            return figures
        batches = self._batches(member, "train", self._train_tasks(member), self._config.epochs)
        held_out = {
            name: self._batches(member, "dev", tasks, 1)
            for name, tasks in self._dev_tasks(member).items()
            if tasks
        }
        tables = [self._tables["train"][relation] for relation in member.relations]
        model = self._start.build(member.name)
        figures, finished = fit(
            model,
            batches,
            lambda trained: validate(trained, held_out, self._vocabulary),
            self._config,
            folder,
            seconds=seconds,
            clock=self._clock,
            resume=resume,
            report=report,
            # An epoch sees a pair in each role (or a share of them); all of these together count as one pair.
            pairs_per_batch=sum(map(len, tables)) / batches.per_epoch,
        )
        figures["padding"] = batches.padding_share()
        if too_long := sum(table.too_long for table in tables):
            figures["pairs_too_long"] = float(too_long)
        figures["majority_bit_accuracy"] = mean(
            self._majority[relation] for relation in member.relations if relation in self._majority
        )
        if self._processes.is_main_process:
            self._save(member, model, figures)
            if finished:
                (folder / FINISHED).touch()
        self._processes.wait_for_everyone()
        return figures

    def _save(self, member: Member, model: Any, figures: dict[str, float]) -> None:
        folder = self._output / member.name
        with clear_disk_errors(folder), replaced_folder(folder / "model") as partial:
            model.save_pretrained(partial)
        plot_curves(Log(folder / "log.csv"), folder / "curves.png", f"{member.name}, {self._config.shape}")
        write_json(folder / "figures.json", figures)

    def _train_tasks(self, member: Member) -> list[Task]:
        """What the model of a member learns from the pairs of train, each with its share."""
        config, tables = self._config, self._tables["train"]
        judges = VERDICT in member.roles
        tasks = []
        for relation in member.relations:
            for role in member.roles:
                share = config.share(role)
                if role == VERDICT:
                    tasks += wrong_tasks(relation, tables, self._inverses, share, config.seed)
                    continue
                judged = judges and role == "plain"
                tasks.append(role_task(relation, role, tables, self._inverses, share, judged=judged))
                if config.hidden and role in ("plain", "sentence"):
                    tasks.append(role_task(relation, role, tables, self._inverses, config.hidden, hidden=True))
            if "plain" in member.roles and relation in self._backward:
                tasks.append(role_task(relation, "plain", self._backward, {}, config.backward))
        return tasks + self._read_verdicts(member, "train")

    def _dev_tasks(self, member: Member) -> dict[str, list[Task]]:
        """What is measured on the pairs of dev, by the name of its figures."""
        tables = self._tables["dev"]
        tasks: dict[str, list[Task]] = {
            role: [role_task(relation, role, tables, self._inverses) for relation in member.relations]
            for role in member.roles
            if role != VERDICT
        }
        if VERDICT in member.roles:
            tasks["verdict"] = [
                task
                for relation in member.relations
                for task in (
                    replace(role_task(relation, "plain", tables, self._inverses, judged=True), learned=False),
                    *wrong_tasks(relation, tables, self._inverses, 1.0, self._config.seed),
                )
            ]
            tasks["read_verdict"] = self._read_verdicts(member, "dev")
        return tasks

    def _read_verdicts(self, member: Member, split: str) -> list[Task]:
        if not self._config.verdicts:
            return []
        by_relation = verdicts_by_relation(Path(self._config.verdicts), split)
        if split == "train" and not by_relation.keys() & {*member.relations}:
            raise UsageError(
                f"{self._config.verdicts} has no verdict of train on {', '.join(member.relations)}",
                hint="check its columns split and relation, or leave out --verdicts",
            )
        return [
            verdict_task(
                relation,
                by_relation[relation],
                self._readers[relation],
                self._vocabulary,
                self._shape.max_tokens,
            )
            for relation in member.relations
            if relation in by_relation
        ]

    def _batches(self, member: Member, split: str, tasks: Sequence[Task], epochs: int) -> TensorBatches:
        examples = Examples(tasks, self._vocabulary, self._reader.nothing)
        if not len(examples):
            reason, remedy = why_empty(self._manifest, member.relations[0], split)
            raise Cod3sError(f"the corpus has no {split} pairs: {reason}", hint=remedy)
        return example_batches(examples, self._config, epochs, reader=self._reader, pad=self._vocabulary.pad)

    def _encode(self, rows: Mapping[str, Rows], corpora: Mapping[str, float]) -> dict[str, PairTable]:
        """The pairs of each relation as token ids."""
        tables = {
            relation: PairTable(
                part, self._vocabulary, self._readers[relation].read, corpora, self._shape.max_tokens
            )
            for relation, part in rows.items()
        }
        for relation, table in tables.items():
            if table.too_long and table.too_long == len(table):
                raise Cod3sError(
                    f"every pair of {relation} is too long for the {self._shape.max_tokens} tokens of this shape",
                    hint="prepare the corpus with a filter such as length:20",
                )
        return tables


def _check_corpora(config: TrainConfig, rows: Splits) -> None:
    known = {name for parts in rows.values() for part in parts.values() for name in part.corpus}
    for name in config.corpora:
        if name not in known:
            hint = did_you_mean(name, known) if any(known) else "its pairs do not say where they come from"
            raise UsageError(f"no pair comes from a corpus called {name!r}", hint=hint)
    taught = {name for part in rows["train"].values() for name in part.corpus}
    if taught and not any(config.corpora.get(name, 1.0) for name in taught):
        raise UsageError(
            "every corpus has the share 0, so there is nothing to learn", hint="raise a share of --corpora"
        )


def _majority_by_relation(rows: Splits) -> dict[str, float]:
    """The share of bits that guessing gets right; a relation without pairs has nothing to guess."""
    return {
        relation: majority_bit_accuracy(part.signature, rows["dev"][relation].signature)
        for relation, part in rows["train"].items()
        if part.signature and rows["dev"][relation].signature
    }


def _open_vocabulary(output: Path, config: TrainConfig, manifest: Manifest, rows: Splits) -> Vocabulary:
    """The run's vocabulary; its text pieces are written first if they are not there yet."""
    pieces = output / PIECES
    if not pieces.exists():
        columns = (column for part in rows["train"].values() for column in (part.source, part.target))
        templates = [relation.template for relation in manifest.relations.values()]
        write_pieces(config, chain.from_iterable(columns), output, templates)
    signature = SignatureTokens(manifest.config.bits, config.bits_per_token, config.positional)
    return Vocabulary(pieces, all_tags(dict.fromkeys(manifest.relations, config.roles)), signature)
