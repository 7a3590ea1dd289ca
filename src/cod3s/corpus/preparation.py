"""Prepare a corpus: turn files of pairs into a folder of signed shards with a manifest and bins.

The three steps (sift, split, sign) leave their results in files that are written completely or not at all: a run
that was killed continues where it stopped and ends with the same bytes.
"""

import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path

import duckdb

from cod3s.bins import build_bins, open_bins
from cod3s.corpus.conditions import Filter
from cod3s.corpus.engines import Engine, LocalEngine
from cod3s.corpus.filters import find_filters
from cod3s.corpus.layout import CorpusFolder
from cod3s.corpus.leakage import count_shared
from cod3s.corpus.manifest import BUG, FunnelStep, InputFile, Manifest, RelationFacts, make_funnel, used_versions
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.corpus.read import find_files
from cod3s.corpus.relations import Relation, find_relations
from cod3s.corpus.shards import NO_ENCODER, FileFacts, ShardWriter, file_facts, read_vectors
from cod3s.corpus.sift import SIFT_REASONS, Sifted, Sifter
from cod3s.corpus.split import LEAKED, SPLIT_REASONS, Plan, SplitCounts, Splitter
from cod3s.corpus.sql import connect
from cod3s.encode import load_encoder
from cod3s.errors import Cod3sError, LocationError, Progress, Stage, silent_stage
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import spooled
from cod3s.io.locations import Location, locate
from cod3s.io.lock import sole_writer
from cod3s.signatures.signer import Signer, open_code


def prepare(
    paths: Sequence[str],
    output: str,
    config: PrepareConfig,
    *,
    engine: Engine | None = None,
    memory: str = "2GB",
    stage: Stage = silent_stage,
) -> tuple[Manifest, bool]:
    """The manifest of the corpus at `output`, and whether there was anything to do.

    A finished corpus of the same input and config is left alone, and an unfinished corpus is finished; a corpus of
    a different input or config is an error. `memory` limits DuckDB, which spills to disk beyond it.
    """
    run = _Run(config, engine or LocalEngine(), memory, stage)
    with ExitStack() as copies:
        return run(find_files([copies.enter_context(spooled(path)) for path in paths]), output)


class _Run:
    """One run of the steps; settings that cannot work are errors before anything is read."""

    def __init__(self, config: PrepareConfig, engine: Engine, memory: str, stage: Stage) -> None:
        self._relations = find_relations(config.relation, config.template)
        self._filters = find_filters(config.filter)
        self._config, self._engine, self._memory, self._stage = config, engine, memory, stage

    def __call__(self, files: list[Location], output: str) -> tuple[Manifest, bool]:
        with self._stage("checksums", len(files)) as progress:
            folder = CorpusFolder(locate(output), self._config, [_input_file(file, progress) for file in files])
        if manifest := folder.finished():
            return manifest, False
        try:
            with sole_writer(folder.location.local) if folder.location.local else nullcontext():
                if manifest := folder.finished():  # by a run that has just ended
                    return manifest, False
                return self._make(files, folder), True
        except duckdb.Error as error:
            raise Cod3sError(
                f"sorting the pairs failed: {error}",
                hint=f"check that {output} has space for several times the input, "
                "and that --memory looks like 2GB",
            ) from error

    def _make(self, files: list[Location], folder: CorpusFolder) -> Manifest:
        signer = self._open_signer()
        folder.begin()
        sifted = self._sift(files, folder)
        with folder.scratch() as scratch:
            plan = self._split(sifted, folder, scratch)
            self._sign(plan, folder, signer)
            if signer:
                _write_code(signer, folder, scratch)
            relations = {}
            for relation in self._relations:
                bins = self._write_bins(relation.name, plan, folder, scratch, signer)
                relations[relation.name] = self._facts(relation, sifted[relation.name], plan, folder, bins)
        manifest = Manifest(
            config=self._config,
            inputs=folder.inputs,
            encoder=signer.encoder.id if signer else None,
            dim=signer.encoder.dim if signer else None,
            relations=relations,
            shared_sentences=plan.shared,
            bad_rows=[example for file in sifted[self._relations[0].name] for example in file.examples],
            versions=used_versions(),
        )
        folder.finish(manifest)
        return manifest

    def _open_signer(self) -> Signer | None:
        """Open the encoder before anything else, so that a wrong name fails at once and not after an hour."""
        config = self._config
        if config.encoder == NO_ENCODER:
            return None
        encoder = load_encoder(config.encoder)
        return Signer(encoder, open_code(config.code, encoder, config.bits, config.seed))

    def _sift(self, files: list[Location], folder: CorpusFolder) -> dict[str, list[Sifted]]:
        """Sift every file for every relation, except those that an earlier run finished."""
        all_tasks = [
            (file, relation, folder.part(relation.name, number))
            for relation in self._relations
            for number, file in enumerate(files)
        ]
        tasks = [task for task in all_tasks if not task[2].with_suffix(".json").exists()]
        try:
            with self._stage("reading and filtering", len(tasks)) as progress:
                self._engine.run(partial(Sifter, self._config), tasks, progress)
            sifted: dict[str, list[Sifted]] = {relation.name: [] for relation in self._relations}
            for _, relation, part in all_tasks:
                sifted[relation.name].append(Sifted(**part.with_suffix(".json").read_json()))
            for name, parts in sifted.items():
                _check_some_left(name, parts)
        except LocationError:
            raise  # a later run continues from here
        except Cod3sError:
            folder.abandon()
            raise
        return sifted

    def _split(self, sifted: dict[str, list[Sifted]], folder: CorpusFolder, scratch: Path) -> Plan:
        """Write the unsigned shards and count, or take what an unfinished run left."""
        if folder.plan.exists():
            return parse_record(Plan, folder.plan.read_json())
        parts = {
            name: [
                folder.part(name, number).with_suffix(".parquet") for number, file in enumerate(files) if file.kept
            ]
            for name, files in sifted.items()
        }
        connection = connect(scratch, self._memory)
        kept = sum(file.kept for files in sifted.values() for file in files)
        with self._stage("de-duplicating and splitting", kept) as progress:
            shards, counts = Splitter(folder.work, self._config, parts, connection, progress)()
        with self._stage("checking for leaks", None):
            train = [folder.unsigned(shard) for shard in shards if shard.split == "train"]
            held_out = [folder.unsigned(shard) for shard in shards if shard.split != "train"]
            shared = count_shared(connection, train, held_out)
        if shared:
            raise Cod3sError(
                f"{shared} sentences of dev or test are also in train, so the corpus is not finished", hint=BUG
            )
        plan = Plan(shards, counts, shared)
        folder.plan.write_json(asdict(plan))
        return plan

    def _sign(self, plan: Plan, folder: CorpusFolder, signer: Signer | None) -> None:
        tasks = [(task,) for task in map(folder.task, plan.shards) if not task.done()]
        with self._stage("signing shards", len(tasks)) as progress:
            make = partial(ShardWriter, self._config.encoder, signer.code if signer else None)
            self._engine.run(make, tasks, progress)

    def _write_bins(
        self, relation: str, plan: Plan, folder: CorpusFolder, scratch: Path, signer: Signer | None
    ) -> FileFacts | None:
        """Build the bins of the relation's train targets on this machine, then copy them into the corpus."""
        tasks = [
            folder.task(shard) for shard in plan.shards if (shard.relation, shard.split) == (relation, "train")
        ]
        if not (self._config.bins and tasks and signer):
            return None
        path, name = scratch / f"{relation}.sqlite", f"{relation}/bins.sqlite"
        encoder = signer.encoder
        with self._stage(f"bins of {relation}", None):
            vectors = read_vectors(tasks, encoder.dim)
            build_bins(path, vectors, signer.code, encoder.id, seed=self._config.seed)
            _put(path, folder.location / name)
        with open_bins(path) as bins:
            return file_facts(folder.location / name, name, bins.populated)

    def _facts(
        self, relation: Relation, sifted: list[Sifted], plan: Plan, folder: CorpusFolder, bins: FileFacts | None
    ) -> RelationFacts:
        count = plan.counts[relation.name]
        tasks = [folder.task(shard) for shard in plan.shards if shard.relation == relation.name]
        return RelationFacts(
            template=relation.template,
            inverse=relation.inverse,
            splits=count.rows,
            funnel=_funnel(sifted, self._filters, count),
            leaked=count.removed[LEAKED],
            shards=[facts for task in tasks if (facts := task.done())],
            bins=bins,
        )


def _write_code(signer: Signer, folder: CorpusFolder, scratch: Path) -> None:
    """Save the hyperplanes, so that a model trained on the corpus can sign as it does."""
    signer.code.save(scratch / "code", signer.encoder.id)
    for file in sorted((scratch / "code").iterdir()):
        _put(file, folder.location / "code" / file.name)


def _put(file: Path, there: Location) -> None:
    with file.open("rb") as source, there.replaced() as copy:
        shutil.copyfileobj(source, copy, 1 << 20)


def _input_file(file: Location, progress: Progress) -> InputFile:
    facts = InputFile(file.name, file.size() or 0, file.sha256())
    progress(1)
    return facts


def _check_some_left(relation: str, parts: list[Sifted]) -> None:
    if any(part.kept for part in parts):
        return
    removed = sum((Counter(part.removed) for part in parts), Counter[str]())
    most = ", ".join(f"{name} {count:,}" for name, count in removed.most_common(3))
    raise Cod3sError(
        f"none of the {sum(part.read for part in parts):,} pairs is left for the relation {relation!r}"
        + (f"; they were removed by: {most}" if most else ""),
        hint="give more pairs, or try --orders all, or other filters with --filter",
    )


def _funnel(sifted: list[Sifted], filters: list[Filter], count: SplitCounts) -> list[FunnelStep]:
    removed = sum((Counter(file.removed) for file in sifted), Counter[str]())
    removed["bad row"] = sum(file.bad for file in sifted)
    removed.update(count.removed)
    reasons = {
        "bad row": "not a pair: see bad_rows in the manifest",
        **SIFT_REASONS,
        **{filter.label: filter.reason for filter in filters},
        **SPLIT_REASONS,
    }
    rows = sum(file.read + file.bad for file in sifted)
    return make_funnel(rows, list(reasons.items()), removed, sum(count.rows.values()))
