"""Generates what is evaluated: a bundle, data and systems in, a file of outputs for each system out.

A system's file appears when all of it is there, so an evaluation that was stopped goes on after the last whole
system. `run.json` remembers what the outputs were made from: outputs of other data, bundles or options never mix.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cod3s.bundle import NAME as BUNDLE_JSON
from cod3s.decode.config import DecodeConfig
from cod3s.decode.generator import Generator
from cod3s.decode.systems import find_system
from cod3s.errors import BundleError, Cod3sError, Progress
from cod3s.evaluate.items import EvaluationData, Item
from cod3s.evaluate.outputs import read_outputs, write_outputs
from cod3s.files.disk import read_json, sha256, write_json
from cod3s.records import AnswerSet

RUN = "run.json"
DEFAULT_SYSTEMS = (
    "s2s",
    "s2s-sigs",
    "s2s-rs",
    "cod3s-beam-beam",
    "cod3s-beam-mmi",
    "cod3s-mmi-mmi",
    "cod3s-mmi-mmi-rs",
    "cod3s-mmi-mmi-rs-no-hamming",
)
"""The rows of the paper's tables 2 and 5 that need no torch."""


@dataclass(frozen=True)
class Named:
    """A system under the name that the report gives it, with the options it runs with."""

    name: str
    system: str
    options: DecodeConfig


def require_system(generator: Generator, system: str, data: EvaluationData, options: DecodeConfig) -> None:
    """An error unless the bundle has the models that a system needs for every relation of the data."""
    for relation in data.counts:
        generator.require_system(system, relation, options)


def runnable(
    generator: Generator,
    systems: Iterable[str],
    data: EvaluationData,
    options: DecodeConfig,
    left_out: Callable[[str], None],
) -> Iterator[str]:
    """Those of the systems that the bundle has the models for; `left_out` is told why another is not run."""
    for name in systems:
        try:
            require_system(generator, name, data, options)
        except BundleError as error:
            left_out(f"{name} is left out: {error.message}")
        else:
            yield name


def bundle_settings(folder: Path, generator: Generator) -> dict[str, Any]:
    """What identifies a bundle in a settings line."""
    facts = generator.facts
    return {
        "bundle": f"{facts.name}@{sha256(folder / BUNDLE_JSON)[:8]}",
        "bits": facts.bits,
        "bits_per_token": facts.bits_per_token,
        "shape": facts.shape,
        "quantization": facts.quantization,
    }


def check_run(folder: Path, run: dict[str, Any]) -> None:
    """Remember what the folder's outputs are made from; an error if those in it were made from something else."""
    path = folder / RUN
    if path.exists():
        before = read_json(path)
        differing = sorted(name for name in {*before, *run} if before.get(name) != run.get(name))
        if differing:
            raise Cod3sError(
                f"{folder} holds outputs that were made with another {' and '.join(differing)}",
                hint="choose another folder, or remove this one",
            )
    else:
        write_json(path, run)


def generate_outputs(
    generator: Generator,
    data: EvaluationData,
    systems: Sequence[Named],
    outputs: Path,
    *,
    progress: Progress = lambda _: None,
) -> dict[str, list[AnswerSet]]:
    """The answers of every system, generated or, where its file is there, read; `progress` hears of sources."""
    found = {}
    for named in systems:
        path = outputs / f"{named.name}.jsonl"
        if not path.exists():
            write_outputs(path, _reported(_generate(generator, data.items, named), progress))
        else:
            progress(len(data.items))
        found[named.name] = read_outputs(path)
    return found


def run_record(data: EvaluationData, bundle: dict[str, Any], options: DecodeConfig) -> dict[str, Any]:
    """What outputs are made from, for `check_run`."""
    return {"data": {"sha256": data.sha256, "items": data.counts}, **bundle, "options": asdict(options)}


def _generate(generator: Generator, items: Sequence[Item], named: Named) -> Iterator[AnswerSet]:
    for relation in dict.fromkeys(item.relation for item in items):
        own = [item for item in items if item.relation == relation]
        sources: list[str | tuple[str, Sequence[str] | None]] = [item.source for item in own]
        if find_system(named.system).oracle:
            gold = generator.signer.signatures([_target(item, named) for item in own])
            sources = [(item.source, [signature]) for item, signature in zip(own, gold, strict=True)]
        yield from generator.generate_many(sources, relation, system=named.system, options=named.options)


def _target(item: Item, named: Named) -> str:
    if not item.target:
        raise Cod3sError(
            f"{named.system} needs the gold target of every source; {item.source!r} has none",
            hint="leave this system out, or use data with gold targets",
        )
    return item.target


def _reported(sets: Iterable[AnswerSet], progress: Progress) -> Iterator[AnswerSet]:
    for own in sets:
        yield own
        progress(1)
