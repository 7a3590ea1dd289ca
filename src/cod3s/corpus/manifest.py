"""The manifest of a prepared corpus: what it was made from, how, and what it holds. Knows no step.

It holds no times and no paths of the machine, so the same input gives the same manifest.
"""

import platform
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cod3s import __version__
from cod3s.corpus.config import PrepareConfig
from cod3s.corpus.funnel import FunnelStep
from cod3s.corpus.shards import FileFacts
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.files.locations import Place

FORMAT = 2  # 1 had no signatures of sources
NAME = "manifest.json"
_LIBRARIES = ("numpy", "pyarrow", "duckdb", "ctranslate2", "wordllama")


@dataclass(frozen=True)
class InputFile:
    """A file of pairs by its content; where it lay does not matter."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class RelationFacts:
    """What one relation of the corpus holds, and how its funnel came to that."""

    template: str
    inverse: str
    splits: dict[str, int]
    funnel: list[FunnelStep]
    leaked: int  # held-out pairs left out because one of their sentences occurs in train
    shards: list[FileFacts]
    bins: FileFacts | None


@dataclass(frozen=True)
class Manifest:
    """A finished corpus. `shared_sentences` was counted on the shards on disk: train against dev and test."""

    config: PrepareConfig
    inputs: list[InputFile]
    encoder: str | None  # the encoder's id
    dim: int | None
    relations: dict[str, RelationFacts]
    shared_sentences: int
    bad_rows: list[str] = field(default_factory=list)  # the first few that were skipped
    versions: dict[str, str] = field(default_factory=dict)
    format: int = FORMAT


def load_manifest(corpus: Place) -> Manifest:
    """The manifest of the corpus folder; a folder without one is unfinished."""
    file = corpus / NAME
    if not file.exists():
        raise Cod3sError(
            f"{corpus.url} holds no finished corpus", hint="run the same `cod3s prepare` again: it resumes"
        )
    try:
        content = file.read_json()
        check_format(content.get("format"), corpus)
        relations = {name: _relation(facts) for name, facts in content.pop("relations").items()}
        config = PrepareConfig(**content.pop("config"))
        inputs = [InputFile(**one) for one in content.pop("inputs")]
        return Manifest(config=config, inputs=inputs, relations=relations, **content)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{file.url} is not a manifest of this version: {error}") from error


def check_format(found: object, corpus: Place) -> None:
    """An error unless the corpus, finished or not, was made in the format of this version."""
    if found != FORMAT:
        raise FileFormatError(
            f"the corpus in {corpus.url} has format {found}, this cod3s makes and reads format {FORMAT}",
            hint="prepare the same pairs again into another folder",
        )


def used_versions() -> dict[str, str]:
    """The versions of what makes the rows, the bits and the bytes."""
    found = {"cod3s": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def as_json(manifest: Manifest) -> dict[str, Any]:
    return asdict(manifest)


def _relation(facts: dict[str, Any]) -> RelationFacts:
    steps = [FunnelStep(**step) for step in facts.pop("funnel")]
    shards = [FileFacts(**shard) for shard in facts.pop("shards")]
    bins = facts.pop("bins")
    return RelationFacts(funnel=steps, shards=shards, bins=bins and FileFacts(**bins), **facts)
