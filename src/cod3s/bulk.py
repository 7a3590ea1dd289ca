"""Answer many sources into a folder of shards, on this machine or on a Ray cluster.

folder/
  job.json              what is answered, and with which settings; written when the sources are split
  answers-00000.jsonl   the answers to a shard of sources, one line each; written completely or not at all
  .work/                the sources of each shard, until all are answered

A run that was stopped continues with the missing shards and ends with the same bytes.
"""

import hashlib
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cod3s import __version__
from cod3s.bundle import NAME as BUNDLE_FACTS
from cod3s.bundle import default_bundle, read_facts
from cod3s.corpus.engines import Engine, LocalEngine
from cod3s.decode.config import DecodeConfig, defaults_of
from cod3s.decode.generator import load
from cod3s.decode.request import in_batches
from cod3s.errors import BundleError, Cod3sError, Progress, Stage, silent_stage
from cod3s.io.disk import read_json, replaced_file, sha256, write_json
from cod3s.io.lock import sole_writer
from cod3s.options import changed_values

FORMAT = 1
NAME = "job.json"


@dataclass(frozen=True)
class Job:
    """How each source is answered. All workers can open the path `bundle`; None is the bundle in the package."""

    relation: str
    bundle: Path | None = None
    system: str = "cod3s"
    config: DecodeConfig | None = None  # the bundle's defaults
    signatures: tuple[str, ...] | None = None  # the bins to write in, instead of those that stage 1 would infer

    @property
    def folder(self) -> Path:
        return self.bundle.absolute() if self.bundle else default_bundle()

    def settings(self) -> dict[str, Any]:
        """Everything that the answers depend on, apart from the sources."""
        return {
            "version": __version__,
            "bundle": sha256(self.folder / BUNDLE_FACTS),  # which holds the checksums of everything else
            "relation": self.relation,
            "system": self.system,
            "signatures": list(self.signatures) if self.signatures else None,
            **asdict(self.config or defaults_of(read_facts(self.folder))),
        }


@dataclass(frozen=True)
class BulkResult:
    """What is in the folder, and how many of its shards this run wrote."""

    folder: str
    sources: int
    shards: int
    written: int


@dataclass(frozen=True)
class _Split:
    """How the sources were split; job.json keeps it, to check that a later run has the same sources."""

    sources: int
    sha256: str
    shards: int


def answer_in_bulk(
    sources: Iterable[str],
    output: Path,
    job: Job,
    *,
    shard_size: int,
    engine: Engine | None = None,
    threads: int | None = None,
    stage: Stage = silent_stage,
) -> BulkResult:
    """Write the answers to all sources to the folder `output`, in shards of `shard_size`.

    Shards that an earlier run finished are kept. A folder made from different sources or settings is an
    error. `threads` is per worker.
    """
    settings = {**job.settings(), "shard_size": shard_size}
    load(job.folder).require_system(job.system, job.relation, job.config)
    with sole_writer(output):
        split = _split_sources(sources, output, settings, shard_size, stage)
        tasks = [(_sources(output, number), _answers(output, number)) for number in range(split.shards)]
        waiting = [task for task in tasks if not task[1].exists()]
        with stage("shards", len(waiting)) as progress:
            make = partial(ShardAnswerer, job, settings["bundle"], threads)
            (engine or LocalEngine()).run(make, waiting, progress)
        shutil.rmtree(output / ".work", ignore_errors=True)
        for killed in output.glob(".*.part"):
            killed.unlink(missing_ok=True)
    return BulkResult(str(output), split.sources, split.shards, len(waiting))


class ShardAnswerer:
    """Answers shards; the bundle is opened once, and must be the job's."""

    def __init__(self, job: Job, bundle: str, threads: int | None) -> None:
        if sha256(job.folder / BUNDLE_FACTS) != bundle:
            raise BundleError(
                f"the bundle at {job.folder} is a different one on this worker",
                hint="install the same cod3s everywhere, or give a bundle on a shared disk with --bundle",
            )
        self._job, self._generator = job, load(job.folder, threads=threads)

    def __call__(self, sources: Path, answers: Path) -> None:
        job = self._job
        texts = sources.read_text(encoding="utf-8").split("\n")[:-1]
        requests = ((text, job.signatures) for text in texts)
        sets = self._generator.generate_many(requests, job.relation, system=job.system, options=job.config)
        with replaced_file(answers) as partial, partial.open("w", encoding="utf-8") as stream:
            stream.writelines(f"{answer_set.to_json()}\n" for answer_set in sets)


def _split_sources(
    sources: Iterable[str], folder: Path, settings: dict[str, Any], shard_size: int, stage: Stage
) -> _Split:
    """Write the sources of each shard that is not yet answered; an earlier run must have had the same ones."""
    job_file = folder / NAME
    before = read_json(job_file) if job_file.exists() else None
    if before is not None:
        _compare(folder, before, settings)
    elif folder.is_dir() and any(not file.name.startswith(".") for file in folder.iterdir()):
        raise Cod3sError(
            f"{folder} already contains files, but no answers from `cod3s generate`",
            hint="choose a new or empty folder",
        )
    with stage("reading sources", None) as progress:
        split = _write_sources(sources, folder, shard_size, progress)
    if before is None:
        write_json(job_file, {"format": FORMAT, "sources": asdict(split), "settings": settings})
    elif before["sources"] != asdict(split):
        shutil.rmtree(folder / ".work", ignore_errors=True)
        raise _other_job(folder, [f"its {before['sources']['sources']} sources are different ones"])
    return split


def _write_sources(sources: Iterable[str], folder: Path, shard_size: int, progress: Progress) -> _Split:
    digest = hashlib.sha256()
    count = shards = 0
    for batch in in_batches(sources, shard_size):
        texts = [text for text, _ in batch]
        lines = "".join(f"{text}\n" for text in texts).encode()
        digest.update(lines)
        if not _answers(folder, shards).exists():
            with replaced_file(_sources(folder, shards)) as partial:
                partial.write_bytes(lines)
        count, shards = count + len(texts), shards + 1
        progress(len(texts))
    if not count:
        raise Cod3sError("there are no sources to answer", hint="give sentences, or a file with --input")
    return _Split(count, digest.hexdigest(), shards)


def _compare(folder: Path, before: dict[str, Any], settings: dict[str, Any]) -> None:
    if before.get("format") != FORMAT:
        raise Cod3sError(f"{folder} has a {NAME} in a different format", hint="choose another folder with -o")
    if changed := changed_values(before["settings"], settings):
        raise _other_job(folder, changed)


def _other_job(folder: Path, changed: list[str]) -> Cod3sError:
    return Cod3sError(
        f"{folder} holds the answers of a different job: {'; '.join(changed)}",
        hint="choose another folder with -o, or delete this folder first",
    )


def _sources(folder: Path, number: int) -> Path:
    return folder / ".work" / f"sources-{number:05d}.txt"


def _answers(folder: Path, number: int) -> Path:
    return folder / f"answers-{number:05d}.jsonl"
