"""The manifest of a prepared corpus: what it was made from, how, what it holds, and what was removed.

It has no times and no local paths, so the same input gives the same manifest.
"""

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from cod3s import __version__
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import read_json, sha256

FORMAT = 3
NAME = "manifest.json"
WORK = ".work"  # what an unfinished corpus has instead
MIN_UNITS = 10  # sources or groups of sources; with fewer none is held out, so that train is not empty
BUG = "this is a bug in cod3s: please report it with the command that you ran"
_LIBRARIES = ("numpy", "pyarrow", "duckdb", "ctranslate2", "wordllama")


@dataclass(frozen=True)
class FunnelStep:
    """One step: how many rows it got, how many it kept, and why it removed the others."""

    name: str
    rows_in: int
    rows_out: int
    reason: str

    @property
    def removed(self) -> int:
        return self.rows_in - self.rows_out


@dataclass(frozen=True)
class InputFile:
    """A file of pairs, identified by its content, wherever it was."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class FileFacts:
    """A finished shard or bins file, with the size and checksum that show whether it is intact."""

    name: str
    rows: int  # of a shard; the populated bins of a bins file
    bytes: int
    sha256: str


def file_facts(file: Path, name: str, rows: int) -> FileFacts:
    """The facts of a file that was just written."""
    return FileFacts(name, rows, file.stat().st_size, sha256(file))


@dataclass(frozen=True)
class RelationFacts:
    """The content of a relation, and the funnel that led to it."""

    template: str
    inverse: str
    splits: dict[str, int]
    funnel: list[FunnelStep]
    shards: list[FileFacts]
    bins: FileFacts | None


@dataclass(frozen=True)
class Manifest:
    """A finished corpus."""

    config: PrepareConfig
    inputs: list[InputFile]
    encoder: str | None  # the encoder's id
    dim: int | None
    relations: dict[str, RelationFacts]
    has_own_splits: bool  # whether the input has a column `split`
    few_sources: bool = False  # so few that none was held out
    bad_rows: list[str] = field(default_factory=list)  # the first few that were skipped
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT


def make_funnel(
    rows: int, reasons: Sequence[tuple[str, str]], removed: Mapping[str, int], kept: int
) -> list[FunnelStep]:
    """The steps in the order of `reasons` (name, reason), from `rows` down to `kept`.

    Counts that do not add up are an error: a corpus whose rows cannot be accounted for is not finished.
    """
    unknown = set(removed) - {name for name, _ in reasons}
    if unknown:
        raise Cod3sError(f"rows were removed by unknown steps: {', '.join(sorted(unknown))}", hint=BUG)
    steps = []
    for name, reason in reasons:
        left = rows - removed.get(name, 0)
        steps.append(FunnelStep(name, rows, left, reason))
        rows = left
    if rows != kept:
        raise Cod3sError(f"the funnel ends with {rows} rows, but {kept} were kept", hint=BUG)
    return steps


def why_empty(manifest: Manifest, relation: str, split: str) -> tuple[str, str]:
    """Why a split has no pairs, and what helps."""
    config = manifest.config
    if split == "train":
        return "none were left for it", "give more pairs"
    if getattr(config, split) == 0:
        return f"it was prepared with --{split} 0", f"prepare it again with, for example, --{split} 100"
    if manifest.few_sources:
        return (
            f"there are fewer than {MIN_UNITS} sources, and each keeps its targets together",
            f"give at least {MIN_UNITS} sources",
        )
    if manifest.has_own_splits:
        return "the column `split` puts no pairs there", f"name {split} in the column `split`"
    if config.held_out is not None:
        return f"--held-out {config.held_out:g} is too small a share", "prepare it again without --held-out"
    return "a few sources have most of the pairs, and each keeps its targets together", "give more sources"


def remarks_on(manifest: Manifest) -> list[str]:
    """A remark on each split that came out empty though it was asked for, and on pairs that --orders left out."""
    remarks = []
    for relation, facts in manifest.relations.items():
        left_out = sum(step.removed for step in facts.funnel if step.name == "order")
        if left_out:
            remarks.append(
                f"{relation} leaves out {left_out:,} pairs that are worded the other way round; "
                "--orders all lets every pair teach both relations"
            )
        for split in ("dev", "test"):
            if getattr(manifest.config, split) != 0 and not facts.splits.get(split):
                reason, remedy = why_empty(manifest, relation, split)
                remarks.append(f"{relation} has no {split} pairs: {reason}; {remedy}")
    return remarks


def load_manifest(corpus: Path) -> Manifest:
    """The manifest of a corpus folder; a folder without it is not finished."""
    file = corpus / NAME
    if not file.exists():
        raise _no_manifest(corpus)
    try:
        content = read_json(file)
        check_format(content.get("format"), corpus)
        return parse_record(Manifest, content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{file} is not a manifest of this format: {error}") from error


def _no_manifest(corpus: Path) -> Cod3sError:
    if (corpus / WORK).exists():
        return Cod3sError(
            f"the corpus in {corpus} is not finished", hint="run the same `cod3s prepare` again to resume"
        )
    is_file = corpus.is_file()
    problem = f"{corpus} is a file, but a corpus is a folder" if is_file else f"there is no corpus in {corpus}"
    return Cod3sError(problem, hint="make a corpus from pairs with `cod3s prepare pairs.tsv -o corpus`")


def check_format(format_number: object, corpus: Path) -> None:
    """Raise an error unless the corpus, finished or not, has the format of this version."""
    if format_number != FORMAT:
        raise FileFormatError(
            f"the corpus in {corpus} has format {format_number}, but this version of cod3s uses {FORMAT}",
            hint="prepare the same pairs again in another folder",
        )


def used_versions() -> dict[str, str]:
    """The versions of what makes the rows, the bits and the bytes."""
    versions = {"cod3s": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions
