"""Prepares a corpus: files of pairs in, a folder of signed shards with its manifest and bins out.

The three steps (sift, split, sign) leave their results in files, each written whole or not at all: a run that
was killed starts where the files say it stopped, and ends with the same bytes.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path

import duckdb

from cod3s.bins import build_bins, open_bins
from cod3s.corpus.conditions import Filter
from cod3s.corpus.config import PrepareConfig
from cod3s.corpus.database import connect
from cod3s.corpus.engines import Engine, LocalEngine
from cod3s.corpus.filters import find_filters
from cod3s.corpus.folder import CorpusFolder
from cod3s.corpus.funnel import FunnelStep, make_funnel
from cod3s.corpus.keys import HeldOut
from cod3s.corpus.leakage import count_shared
from cod3s.corpus.manifest import InputFile, Manifest, RelationFacts, used_versions
from cod3s.corpus.read import find_files
from cod3s.corpus.relations import Relation, columns_of, find_relations
from cod3s.corpus.shards import NO_ENCODER, FileFacts, Signer, file_facts, read_vectors
from cod3s.corpus.sift import SIFT_REASONS, Sifted, Sifter
from cod3s.corpus.split import SPLIT_REASONS, Plan, Shard, Sizes, SplitCounts, Splitter
from cod3s.encode import Encoder, load_encoder
from cod3s.errors import Cod3sError, PlaceError, Progress
from cod3s.files.locations import Place, place
from cod3s.signatures import Code
from cod3s.signatures.signer import open_code

Stage = Callable[[str, int | None], AbstractContextManager[Progress]]
"""Called with a label and a total; gives what reports progress."""


def prepare(
    paths: Sequence[str],
    output: str,
    config: PrepareConfig,
    *,
    engine: Engine | None = None,
    memory: str = "2GB",
    stage: Stage = lambda _label, _total: nullcontext(lambda _done: None),
) -> tuple[Manifest, bool]:
    """The manifest of the corpus at `output`, and whether there was anything to do.

    A finished corpus of the same input and config is left alone; an unfinished one is finished; one of another
    input or config is an error. `memory` limits DuckDB, which spills to disk beyond it.
    """
    run = _Run(config, engine or LocalEngine(), memory, stage)
    files = find_files(paths)
    with stage("checksums", len(files)) as progress:
        folder = CorpusFolder(place(output), config, [_input_file(file, progress) for file in files])
    if manifest := folder.finished():
        return manifest, False
    try:
        return run(files, folder), True
    except duckdb.Error as error:
        raise Cod3sError(
            f"sorting the pairs failed: {error}",
            hint=f"check that {output} has room for several times the input, and that --memory is like 2GB",
        ) from error


class _Run:
    """One run of the steps, in the order of __call__."""

    def __init__(self, config: PrepareConfig, engine: Engine, memory: str, stage: Stage) -> None:
        self._relations = find_relations(config.relation, config.template)
        self._filters = find_filters(config.filter)
        self._held_out = HeldOut(config.held_out if config.dev or config.test else 0)
        self._config, self._engine, self._memory, self._stage = config, engine, memory, stage

    def __call__(self, files: list[Place], folder: CorpusFolder) -> Manifest:
        encoder, code = self._open_encoder()
        folder.begin()
        sifted = self._sift(files, folder)
        with folder.scratch() as scratch:
            plan = self._split(sifted, folder, scratch)
            self._sign(plan, folder, code)
            if encoder and code:
                self._write_code(code, encoder, folder, scratch)
            relations = {}
            for relation in self._relations:
                made = self._write_bins(relation, plan, folder, scratch, encoder, code)
                relations[relation.name] = self._facts(relation, sifted[relation.name], plan, folder, made)
        manifest = Manifest(
            config=self._config,
            inputs=folder.inputs,
            encoder=encoder.id if encoder else None,
            dim=encoder.dim if encoder else None,
            relations=relations,
            shared_sentences=plan.shared,
            bad_rows=[example for one in sifted[self._relations[0].name] for example in one.examples],
            versions=used_versions(),
        )
        folder.finish(manifest)
        return manifest

    def _open_encoder(self) -> tuple[Encoder | None, Code | None]:
        """Opened before anything else: a wrong name is found at once, not after an hour of sorting."""
        if self._config.encoder == NO_ENCODER:
            return None, None
        encoder = load_encoder(self._config.encoder)
        return encoder, open_code(self._config.code, encoder, self._config.bits, self._config.seed)

    def _sift(self, files: list[Place], folder: CorpusFolder) -> dict[str, list[Sifted]]:
        """Every file as every relation sees it; what was sifted before is not sifted again."""
        all_tasks = [
            (file, relation, folder.part(relation.name, number))
            for relation in self._relations
            for number, file in enumerate(files)
        ]
        tasks = [task for task in all_tasks if not task[2].with_suffix(".json").exists()]
        make = partial(
            Sifter,
            filters=self._config.filter,
            matching_orders=self._config.orders == "matching",
            skip_bad=self._config.bad_rows == "skip",
            names=columns_of(self._relations),
        )
        try:
            with self._stage("reading and filtering", len(tasks)) as progress:
                self._engine.run(make, tasks, progress)
            sifted: dict[str, list[Sifted]] = {relation.name: [] for relation in self._relations}
            for _, relation, part in all_tasks:
                sifted[relation.name].append(Sifted(**part.with_suffix(".json").read_json()))
            for name, parts in sifted.items():
                _check_some_left(name, parts)
        except PlaceError:
            raise  # a later run goes on where this one stopped
        except Cod3sError:
            folder.abandon()
            raise
        return sifted

    def _split(self, sifted: dict[str, list[Sifted]], folder: CorpusFolder, scratch: Path) -> Plan:
        """The unsigned shards and the counts, or those of the run that is being finished."""
        if folder.plan.exists():
            return Plan.from_json(folder.plan.read_json())
        parts = {
            name: [
                folder.part(name, number).with_suffix(".parquet") for number, one in enumerate(found) if one.kept
            ]
            for name, found in sifted.items()
        }
        sizes = Sizes(self._config.limit, self._config.dev, self._config.test, self._config.shard_rows)
        splitter = Splitter(folder.work, sizes, self._held_out, scratch, self._memory)
        kept = sum(one.kept for found in sifted.values() for one in found)
        with self._stage("de-duplicating and splitting", kept) as progress:
            shards, counts = splitter(parts, progress)
        with self._stage("checking for leaks", None):
            shared = self._count_shared(shards, folder, scratch)
        assert not shared, f"{shared} sentences of dev or test are in train"
        plan = Plan(shards, counts, shared)
        folder.plan.write_json(asdict(plan))
        return plan

    def _count_shared(self, shards: list[Shard], folder: CorpusFolder, scratch: Path) -> int:
        train = [folder.unsigned(shard) for shard in shards if shard.split == "train"]
        held_out = [folder.unsigned(shard) for shard in shards if shard.split != "train"]
        return count_shared(connect(scratch, self._memory), train, held_out)

    def _sign(self, plan: Plan, folder: CorpusFolder, code: Code | None) -> None:
        tasks = [folder.task(shard, self._wants_vectors(shard)) for shard in plan.shards]
        waiting = [(task,) for task in tasks if not task.done()]
        with self._stage("signing shards", len(waiting)) as progress:
            self._engine.run(partial(Signer, self._config.encoder, code), waiting, progress)

    def _wants_vectors(self, shard: Shard) -> bool:
        return self._config.bins and self._config.encoder != NO_ENCODER and shard.split == "train"

    def _write_code(self, code: Code, encoder: Encoder, folder: CorpusFolder, scratch: Path) -> None:
        """The hyperplanes, so that what is trained on the corpus can sign as it does."""
        code.save(scratch / "code", encoder.id)
        for file in sorted((scratch / "code").iterdir()):
            _put(file, folder.place / "code" / file.name)

    def _write_bins(
        self,
        relation: Relation,
        plan: Plan,
        folder: CorpusFolder,
        scratch: Path,
        encoder: Encoder | None,
        code: Code | None,
    ) -> FileFacts | None:
        """The bins of the relation's train targets: made on this machine, then put in place whole."""
        train = [shard for shard in plan.shards if (shard.relation, shard.split) == (relation.name, "train")]
        if not (self._config.bins and train and encoder and code):
            return None
        made, name = scratch / f"{relation.name}.sqlite", f"{relation.name}/bins.sqlite"
        with self._stage(f"bins of {relation.name}", None):
            vectors = read_vectors([folder.task(shard, True) for shard in train], encoder.dim)
            build_bins(made, vectors, code, encoder.id, seed=self._config.seed)
            _put(made, folder.place / name)
        with open_bins(made) as bins:
            return file_facts(folder.place / name, name, bins.populated)

    def _facts(
        self, relation: Relation, sifted: list[Sifted], plan: Plan, folder: CorpusFolder, bins: FileFacts | None
    ) -> RelationFacts:
        count = plan.counts[relation.name]
        tasks = [folder.task(shard, False) for shard in plan.shards if shard.relation == relation.name]
        return RelationFacts(
            template=relation.template,
            inverse=relation.inverse,
            splits=count.rows,
            funnel=_funnel(sifted, self._filters, count),
            leaked=count.leaked,
            shards=[facts for task in tasks if (facts := task.done())],
            bins=bins,
        )


def _put(file: Path, there: Place) -> None:
    with file.open("rb") as source, there.replaced() as copy:
        shutil.copyfileobj(source, copy, 1 << 20)


def _input_file(file: Place, progress: Progress) -> InputFile:
    found = InputFile(file.name, file.size() or 0, file.sha256())
    progress(1)
    return found


def _check_some_left(relation: str, parts: list[Sifted]) -> None:
    if any(part.kept for part in parts):
        return
    removed = sum((Counter(part.removed) for part in parts), Counter[str]())
    most = ", ".join(f"{name} {count:,}" for name, count in removed.most_common(3))
    raise Cod3sError(
        f"of {sum(part.read for part in parts):,} pairs none is left for the relation {relation!r}"
        + (f"; they were removed by: {most}" if most else ""),
        hint="give more pairs, or try --orders all, or other filters with --filter",
    )


def _funnel(sifted: list[Sifted], filters: list[Filter], count: SplitCounts) -> list[FunnelStep]:
    removed = sum((Counter(one.removed) for one in sifted), Counter[str]())
    removed["bad row"] = sum(one.bad for one in sifted)
    removed.update(count.removed)
    reasons = {
        "bad row": "not a pair: see bad_rows in the manifest",
        **SIFT_REASONS,
        **{one.label: one.reason for one in filters},
        **SPLIT_REASONS,
    }
    rows = sum(one.read + one.bad for one in sifted)
    return make_funnel(rows, list(reasons.items()), removed, sum(count.rows.values()))
