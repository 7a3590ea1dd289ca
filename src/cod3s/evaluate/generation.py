"""Generate the outputs to evaluate: a file of answers per system.

A system's file appears only when it is complete, so a stopped evaluation continues after the last complete system.
`run.json` records what the outputs were made from, so outputs of different data, bundles or options never mix.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cod3s.decode.decode_config import DecodeConfig, find_preset
from cod3s.decode.generator import Generator
from cod3s.decode.systems import ENGINE_SYSTEMS, find_system
from cod3s.errors import BundleError, Cod3sError, Progress, Stage, silent_stage
from cod3s.evaluate.items import EvaluationData, Item
from cod3s.evaluate.outputs import read_outputs, write_outputs
from cod3s.io.disk import read_json, write_json
from cod3s.records import AnswerSet

RUN = "run.json"
DEFAULT_SYSTEM = "cod3s"
"""What `cod3s generate` runs: with its options, unless a preset for every system is named."""
DEFAULT_PRESET, PAPER_PRESET, QUICK_PRESET = "default", "paper", "quick"
DEFAULT_SYSTEMS = (DEFAULT_SYSTEM, "s2s", "s2s-rs", "cod3s-mmi-mmi")
"""The default system, and of the paper's: a beam, samples, and the two stages."""
SYSTEM_GROUPS: dict[tuple[str, ...], tuple[str, ...]] = {(): DEFAULT_SYSTEMS, ("all",): ENGINE_SYSTEMS}
"""Lists that stand for several systems: of these, those that the bundle has the models for run."""


@dataclass(frozen=True)
class Named:
    """A system, its name in the report, and the options that it runs with."""

    name: str
    system: str
    options: DecodeConfig


def name_systems(names: Iterable[str], preset: str, *, k: int, seed: int) -> list[Named]:
    """The systems with their options: those of the preset, by default `paper`, but `generate`'s for `cod3s`.

    `quick` only narrows the beams of the paper's systems, so `cod3s` keeps its options there, too. It leaves out
    unsuitable answers, as for users; the others are unfiltered, as in the paper. Implausible answers stay, because
    sets of k answers are compared.
    """
    options = find_preset(preset or PAPER_PRESET).with_values(k=k, seed=seed, unfiltered=True)
    of_default = DEFAULT_PRESET if preset in ("", QUICK_PRESET) else preset
    default_options = find_preset(of_default).with_values(k=k, seed=seed, drop=False)
    return [
        Named(name, find_system(name).name, default_options if name == DEFAULT_SYSTEM else options)
        for name in names
    ]


def require_system(generator: Generator, system: str, data: EvaluationData, options: DecodeConfig) -> None:
    """Fail unless the bundle has the models that a system needs for every relation of the data."""
    for relation in data.counts:
        generator.require_system(system, relation, options)


def runnable(
    generator: Generator, systems: Iterable[Named], data: EvaluationData, remark: Callable[[str], None]
) -> Iterator[Named]:
    """The systems that the bundle has the models for; `remark` gets the reason for each of the others."""
    for named in systems:
        try:
            require_system(generator, named.system, data, named.options)
        except BundleError as error:
            remark(f"{named.name} is skipped: {error.message}")
        else:
            yield named


def check_run(folder: Path, outputs: Path, run: dict[str, Any], *, force: bool = False) -> None:
    """Record in `folder` what `outputs` are made from; those made from something else are an error.

    With `force` they are removed instead.
    """
    path = folder / RUN
    before = read_json(path) if path.exists() else run
    differing = sorted(name for name in {*before, *run} if before.get(name) != run.get(name))
    if differing and not force:
        raise Cod3sError(
            f"{folder} contains outputs with different {' and '.join(differing)}",
            hint="choose another folder, or add --force to replace them",
        )
    for file in outputs.glob("*.jsonl") if differing else ():
        file.unlink()
    write_json(path, run)


def generate_outputs(
    generator: Generator,
    data: EvaluationData,
    systems: Sequence[Named],
    outputs: Path,
    *,
    stage: Stage = silent_stage,
) -> dict[str, list[AnswerSet]]:
    """The answers of every system: read if its file exists, else generated. A `stage` counts its sources."""
    answers = {}
    for number, named in enumerate(systems, 1):
        path = outputs / f"{named.name}.jsonl"
        if not path.exists():
            with stage(f"generating {number}/{len(systems)}: {named.name}", len(data.items)) as progress:
                write_outputs(path, _generate(generator, data.items, named, progress))
        answers[named.name] = read_outputs(path)
    return answers


def run_record(data: EvaluationData, bundle: dict[str, Any], options: DecodeConfig) -> dict[str, Any]:
    """What `check_run` records."""
    return {"data": {"sha256": data.sha256, "items": data.counts}, **bundle, "options": asdict(options)}


def _generate(
    generator: Generator, items: Sequence[Item], named: Named, progress: Progress
) -> Iterator[AnswerSet]:
    for relation in dict.fromkeys(item.relation for item in items):
        related = [item for item in items if item.relation == relation]
        sources: list[str | tuple[str, Sequence[str] | None]] = [item.source for item in related]
        if find_system(named.system).oracle:
            gold = generator.signer.signatures([_target(item, named) for item in related])
            sources = [(item.source, [signature]) for item, signature in zip(related, gold, strict=True)]
        for answers in generator.generate_many(sources, relation, system=named.system, options=named.options):
            yield answers
            progress(1)


def _target(item: Item, named: Named) -> str:
    if not item.target:
        raise Cod3sError(
            f"{named.system} needs the gold target of every source; {item.source!r} has none",
            hint="remove this system, or use data with gold targets",
        )
    return item.target
