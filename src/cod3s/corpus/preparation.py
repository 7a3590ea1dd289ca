"""Prepare a corpus: turn files of pairs into a folder of signed shards with a manifest and bins.

The three steps (sift, split, sign) leave their results in files that are written completely or not at all: a run
that was killed continues where it stopped and ends with the same bytes.
"""

import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from cod3s.bins import build_bins, open_bins
from cod3s.corpus.engines import Engine, LocalEngine
from cod3s.corpus.filters import Filter, find_filters
from cod3s.corpus.layout import CorpusFolder
from cod3s.corpus.manifest import (
    BUG,
    FileFacts,
    FunnelStep,
    InputFile,
    Manifest,
    RelationFacts,
    file_facts,
    make_funnel,
    used_versions,
)
from cod3s.corpus.pairs import find_files
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.corpus.relations import Relation, find_relations
from cod3s.corpus.shards import NO_ENCODER, ShardWriter, read_vectors
from cod3s.corpus.sift import SIFT_REASONS, Sifted, Sifter
from cod3s.corpus.split import SPLIT_REASONS, Plan, SplitCounts, Splitter, count_shared
from cod3s.corpus.sql import connect
from cod3s.encode import Encoder, load_encoder
from cod3s.errors import Cod3sError, LocationError, Progress, Stage, silent_stage
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import read_json, replaced_file, sha256, spooled, write_json
from cod3s.io.lock import sole_writer
from cod3s.signatures import Code, itq_code, load_code, median_code
from cod3s.signatures.signer import Signer, embed_all, open_code

_FITTED = 50_000  # sentences that a learned code is fitted on: more hardly move it
_LEARNED = {"median": median_code, "itq": itq_code}


def prepare(
    paths: Sequence[str | Path],
    output: str | Path,
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
        return run(find_files([copies.enter_context(spooled(Path(path))) for path in paths]), Path(output))


class _Run:
    """One run of the steps; settings that cannot work are errors before anything is read."""

    def __init__(self, config: PrepareConfig, engine: Engine, memory: str, stage: Stage) -> None:
        self._relations = find_relations(config.relation, config.template)
        self._filters = find_filters(config.filter)
        self._config, self._engine, self._memory, self._stage = config, engine, memory, stage

    def __call__(self, files: list[Path], output: Path) -> tuple[Manifest, bool]:
        with self._stage("checksums", len(files)) as progress:
            folder = CorpusFolder(output, self._config, [_input_file(file, progress) for file in files])
        if manifest := folder.finished():
            return manifest, False
        try:
            with sole_writer(output):
                if manifest := folder.finished():  # by a run that has just ended
                    return manifest, False
                return self._make(files, folder), True
        except duckdb.Error as error:
            raise Cod3sError(
                f"sorting the pairs failed: {error}",
                hint=f"check that {output} has space for several times the input, "
                "and that --memory looks like 2GB",
            ) from error

    def _make(self, files: list[Path], folder: CorpusFolder) -> Manifest:
        # Before anything else, so that a wrong name fails at once and not after an hour.
        encoder = None if self._config.encoder == NO_ENCODER else load_encoder(self._config.encoder)
        if encoder and self._config.code not in _LEARNED:
            open_code(self._config.code, encoder, self._config.bits, self._config.seed)
        folder.begin()
        sifted = self._sift(files, folder)
        with folder.scratch() as scratch:
            plan = self._split(sifted, folder, scratch)
            signer = Signer(encoder, self._code(encoder, plan, folder)) if encoder else None
            self._sign(plan, folder, signer)
            relations = {}
            for relation in self._relations:
                if relation.name not in sifted:
                    continue
                bins = self._write_bins(relation.name, plan, folder, scratch, signer)
                relations[relation.name] = self._facts(relation, sifted[relation.name], plan, folder, bins)
        manifest = Manifest(
            config=self._config,
            inputs=folder.inputs,
            encoder=signer.encoder.id if signer else None,
            dim=signer.encoder.dim if signer else None,
            relations=relations,
            has_own_splits=plan.has_own_splits,
            few_sources=plan.few_sources,
            bad_rows=[row for file in next(iter(sifted.values())) for row in file.bad_rows],
            versions=used_versions(),
        )
        folder.finish(manifest)
        return manifest

    def _code(self, encoder: Encoder, plan: Plan, folder: CorpusFolder) -> Code:
        """The code of the corpus, fitted on a sample of train if it is a learned one."""
        config, path = self._config, folder.path / "code"
        if (path / "code.json").exists():
            return load_code(path)[0]
        if make := _LEARNED.get(config.code):
            shards = [shard for shard in plan.shards if shard.split == "train"]
            most = _FITTED // max(1, len(shards))
            tables = [pq.read_table(folder.unsigned(shard), columns=["source", "target"]) for shard in shards]
            texts = {
                text for table in tables for column in table.slice(0, most).columns for text in column.to_pylist()
            }
            with self._stage("fitting the code", len(texts)) as progress:
                code = make(embed_all(encoder, sorted(texts), progress), config.bits, config.seed)
        else:
            code = open_code(config.code, encoder, config.bits, config.seed)
        code.save(path, encoder.id)
        return code

    def _sift(self, files: list[Path], folder: CorpusFolder) -> dict[str, list[Sifted]]:
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
                sifted[relation.name].append(Sifted(**read_json(part.with_suffix(".json"))))
            return _with_pairs(sifted)
        except LocationError:
            raise  # a later run continues from here
        except Cod3sError:
            folder.abandon()
            raise

    def _split(self, sifted: dict[str, list[Sifted]], folder: CorpusFolder, scratch: Path) -> Plan:
        """Write the unsigned shards and count, or take what an unfinished run left."""
        if folder.plan.exists():
            return parse_record(Plan, read_json(folder.plan))
        parts = {
            name: [
                folder.part(name, number).with_suffix(".parquet") for number, file in enumerate(files) if file.kept
            ]
            for name, files in sifted.items()
        }
        connection = connect(scratch, self._memory)
        kept = sum(file.kept for files in sifted.values() for file in files)
        with self._stage("de-duplicating and splitting", kept) as progress:
            plan = Splitter(folder.work, self._config, parts, connection, progress)()
        with self._stage("checking for leaks", None):
            shared = count_shared(connection, folder.work, plan.shards)
        if shared:
            raise Cod3sError(
                f"{shared} sources of dev or test are also in train, so the corpus is not finished", hint=BUG
            )
        write_json(folder.plan, asdict(plan))
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
            with replaced_file(folder.path / name) as copy:
                shutil.copyfile(path, copy)
        with open_bins(path) as bins:
            return file_facts(folder.path / name, name, bins.populated)

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
            shards=[facts for task in tasks if (facts := task.done())],
            bins=bins,
        )


def _input_file(file: Path, progress: Progress) -> InputFile:
    facts = InputFile(file.name, file.stat().st_size, sha256(file))
    progress(1)
    return facts


def _with_pairs(sifted: dict[str, list[Sifted]]) -> dict[str, list[Sifted]]:
    """The relations that have pairs; a relation of which no row is, in files that name relations, is left out."""
    present = {}
    for relation, files in sifted.items():
        removed = sum((Counter(file.removed) for file in files), Counter[str]())
        rows = sum(file.rows for file in files)
        if any(file.kept for file in files):
            present[relation] = files
        elif removed["relation"] < rows or len(sifted) == 1:
            most = ", ".join(f"{name} {count:,}" for name, count in removed.most_common(3))
            raise Cod3sError(
                f"none of the {rows:,} pairs is left for the relation {relation!r}"
                + (f"; they were removed by: {most}" if most else ""),
                hint="give more pairs, or try --orders all, or other filters with --filter",
            )
    if not present:
        raise Cod3sError(
            "no row is about cause or effect", hint="name the relation with --relation and --template"
        )
    return present


def _funnel(sifted: list[Sifted], filters: list[Filter], count: SplitCounts) -> list[FunnelStep]:
    removed = sum((Counter(file.removed) for file in sifted), Counter[str]())
    removed.update(count.removed)
    reasons = {
        **SIFT_REASONS,
        **{filter.label: filter.reason for filter in filters},
        **SPLIT_REASONS,
    }
    rows = sum(file.rows for file in sifted)
    return make_funnel(rows, list(reasons.items()), removed, sum(count.rows.values()))
