"""Generate the outputs to evaluate: a file of answers per system, block by block.

All systems answer a block of sources before the next begins, so that they can be compared whenever it ends.
Answers are appended to the files as they come, and a later run continues after the last whole line. `run.json`
records what the outputs were made from, so outputs of different data, bundles or options never mix.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from cod3s.decode.config import DecodeConfig, find_preset
from cod3s.decode.generator import Generator
from cod3s.decode.systems import LISTED_SYSTEMS, find_system
from cod3s.errors import BundleError, Cod3sError
from cod3s.evaluate.config import EvaluateConfig
from cod3s.evaluate.grading import bundle_id
from cod3s.evaluate.items import EvaluationData, Item
from cod3s.evaluate.outputs import Block, append_outputs, resume_outputs
from cod3s.io.disk import read_json, write_json
from cod3s.records import AnswerSet

RUN = "run.json"
BLOCK, LIMITED_BLOCK = 8, 1
"""Sources of each relation that all systems answer before the next ones; fewer where time is limited."""
DEFAULT_SYSTEM = "cod3s"
"""What `cod3s generate` runs: with its options, unless a preset for every system is named."""
DEFAULT_PRESET, PAPER_PRESET, QUICK_PRESET = "default", "paper", "quick"
DEFAULT_SYSTEMS = (DEFAULT_SYSTEM, "s2s", "s2s-rs", "cod3s-mmi-mmi")
"""The default system, and of the paper's: a beam, samples, and the two stages."""
SYSTEM_GROUPS: dict[tuple[str, ...], tuple[str, ...]] = {(): DEFAULT_SYSTEMS, ("all",): LISTED_SYSTEMS}
"""Lists that stand for several systems: of these, those that the bundle has the models for run."""

Work = TypeVar("Work")


@dataclass(frozen=True)
class Named:
    """A system, its name in the report, and the options that it runs with."""

    name: str
    system: str
    options: DecodeConfig


class TimeLimit:
    """The time that a command may take, from the moment this is made; None for no limit."""

    def __init__(self, minutes: float | None) -> None:
        self._start, self._seconds = monotonic(), None if minutes is None else 60 * minutes

    def during(self, blocks: Iterable[Work], share: float) -> Iterator[Work]:
        """The blocks of work that are likely to end within this share of the time; always the first one.

        What is done with a block counts, as well as making it; the next one may take as long as the longest so
        far.
        """
        pending, longest, begun = iter(blocks), 0.0, monotonic()
        while self._seconds is None or not longest or begun + longest < self._start + share * self._seconds:
            try:
                yield next(pending)
            except StopIteration:
                return
            now = monotonic()
            longest, begun = max(longest, now - begun), now


def name_systems(names: Iterable[str], preset: str, defaults: DecodeConfig, *, k: int, seed: int) -> list[Named]:
    """The systems with their options: those of the preset, by default `paper`, but `generate`'s for `cod3s`.

    `quick` only narrows the beams of the paper's systems, so `cod3s` keeps its options there, too. It leaves out
    unsuitable answers, as for users; the others are unfiltered, as in the paper. Implausible answers and
    those to sensitive sources stay, because sets of k answers are compared.
    """
    options = find_preset(preset or PAPER_PRESET, defaults).with_values(k=k, seed=seed, unfiltered=True)
    of_default = DEFAULT_PRESET if preset in ("", QUICK_PRESET) else preset
    default_options = find_preset(of_default, defaults).with_values(
        k=k, seed=seed, show_doubtful=True, sensitive=True
    )
    return [
        Named(name, find_system(name).name, default_options if name == DEFAULT_SYSTEM else options)
        for name in names
    ]


def choose_systems(
    generator: Generator, data: EvaluationData, config: EvaluateConfig
) -> tuple[list[Named], list[str]]:
    """The systems to run; of a group, those that the bundle has the models for, and why the others are skipped."""
    names = SYSTEM_GROUPS.get(config.systems, config.systems)
    chosen, remarks = [], []
    for named in name_systems(names, config.preset, generator.defaults, k=max(config.sets), seed=config.seed):
        try:
            require_system(generator, named.system, data, named.options)
        except BundleError as error:
            if config.systems not in SYSTEM_GROUPS:
                raise
            remarks.append(f"{named.name} is skipped: {error.message}")
        else:
            chosen.append(named)
    return chosen, remarks


def require_system(generator: Generator, system: str, data: EvaluationData, options: DecodeConfig) -> None:
    """Fail unless the bundle has the models that a system needs for every relation of the data."""
    for relation in data.counts:
        generator.require_system(system, relation, options)


def check_run(folder: Path, outputs: Path, run: Mapping[str, Any], *, force: bool = False) -> None:
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


def run_record(data: EvaluationData, generator: Generator, options: DecodeConfig) -> dict[str, Any]:
    """What `check_run` records."""
    content = {"sha256": data.sha256, "items": data.counts}
    return {"data": content, "bundle": bundle_id(generator), "options": asdict(options)}


def answered_blocks(
    generator: Generator, items: Sequence[Item], systems: Sequence[Named], outputs: Path, *, limited: bool = False
) -> Iterator[Block]:
    """The next items with every system's answers: read if its file has them, else generated and appended."""
    before = {named.name: iter(resume_outputs(outputs / f"{named.name}.jsonl")) for named in systems}
    size = (LIMITED_BLOCK if limited else BLOCK) * len({item.relation for item in items})
    for start in range(0, len(items), size):
        block = items[start : start + size]
        answers = {}
        for named in systems:
            stored = list(islice(before[named.name], len(block)))
            written = _generate(generator, block[len(stored) :], named)
            append_outputs(outputs / f"{named.name}.jsonl", written)
            answers[named.name] = stored + written
        yield block, answers


def _generate(generator: Generator, items: Sequence[Item], named: Named) -> list[AnswerSet]:
    """The answers to items, in their order."""
    answers: dict[int, AnswerSet] = {}
    for relation in dict.fromkeys(item.relation for item in items):
        related = [number for number, item in enumerate(items) if item.relation == relation]
        sources: list[str | tuple[str, Sequence[str] | None]] = [items[number].source for number in related]
        if find_system(named.system).oracle:
            gold = generator.signer.signatures([_target(items[number], named) for number in related])
            sources = [
                (items[number].source, [signature]) for number, signature in zip(related, gold, strict=True)
            ]
        sets = generator.generate_many(sources, relation, system=named.system, options=named.options)
        answers |= zip(related, sets, strict=True)
    return [answers[number] for number in range(len(items))]


def _target(item: Item, named: Named) -> str:
    if not item.target:
        raise Cod3sError(
            f"{named.system} needs the gold target of every source; {item.source!r} has none",
            hint="remove this system, or use data with gold targets",
        )
    return item.target
