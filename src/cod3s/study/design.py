"""Make a study folder from output files, gold questions and the choices of a design."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from cod3s import __version__
from cod3s.corpus.questions import read_questions
from cod3s.corpus.relations import TEMPLATES
from cod3s.errors import UsageError, did_you_mean
from cod3s.evaluate.outputs import output_files, read_systems
from cod3s.io.disk import sha256, spooled
from cod3s.options import SEED
from cod3s.study.folder import CHECK, Exclusion, Item, Study, write_study
from cod3s.study.raters import new_code, new_id, new_token, timestamp, token_hash
from cod3s.study.statements import Systems, answer_items, attention_checks, choose_questions, gold_items, mix

QUESTION = "How plausible is this statement?"
SCALE = ("makes no sense", "very unlikely", "unlikely", "possible", "likely", "very likely")
INSTRUCTIONS = (Path(__file__).parent / "instructions.txt").read_text(encoding="utf-8")
"""What raters read unless the design says otherwise."""
DEFAULT_TOP = 3  # answers per source that are rated, as in the paper


@dataclass(frozen=True)
class Design:
    """The choices behind a study; `top` is the number of rated answers per source by system, "" for the others."""

    name: str = ""
    seed: int = SEED
    raters_per_item: int = 4
    per_rater: int = 50
    top: Mapping[str, int] = field(default_factory=dict)
    checks: int = 3
    gold: int | None = None
    templates: Mapping[str, str] = field(default_factory=dict)
    instructions: str = INSTRUCTIONS
    completion_code: str = ""
    exclusion: Exclusion = field(default_factory=Exclusion)


@dataclass(frozen=True)
class NewStudy:
    """A new study. The token is shown once: only its hash is stored."""

    study: Study
    items: tuple[Item, ...]
    admin_token: str


def raters_needed(study: Study, items: Sequence[Item]) -> int:
    """The smallest number of raters who can rate every item often enough; it may take another to fill a gap."""
    rated = sum(item.kind != CHECK for item in items)
    return ceil(rated * study.raters_per_item / study.per_rater)


def make_study(folder: Path, outputs: Sequence[Path], gold_questions: Path | None, design: Design) -> NewStudy:
    """Write the study of `outputs` into `folder`; `-` is standard input."""
    with ExitStack() as copies:
        files = [copies.enter_context(spooled(path)) for path in outputs]
        gold_file = copies.enter_context(spooled(gold_questions)) if gold_questions else None
        systems = read_systems(files)
        templates = {**TEMPLATES, **design.templates}
        answers = answer_items(systems, templates, _tops(systems, design.top))
        gold = []
        if gold_file is not None:
            questions = list(read_questions(gold_file))
            gold = gold_items(choose_questions(questions, systems, design.gold, design.seed), templates)
        origins = _origins([*output_files(files), *([gold_file] if gold_file else [])], systems)
    items = mix(answers, gold, attention_checks(design.checks), design.seed)
    token = new_token()
    study = Study(
        id=new_id(),
        name=design.name or folder.resolve().name,
        created=timestamp(),
        seed=design.seed,
        raters_per_item=design.raters_per_item,
        per_rater=min(design.per_rater, sum(item.kind != CHECK for item in items)),
        question=QUESTION,
        scale=SCALE,
        instructions=design.instructions,
        completion_code=design.completion_code or new_code(),
        admin_token_hash=token_hash(token),
        templates={relation: templates[relation] for relation in sorted({item.relation for item in items} - {""})},
        exclusion=design.exclusion,
        outputs=origins,
        version=__version__,
    )
    write_study(folder, study, items)
    return NewStudy(study, tuple(items), token)


def _tops(systems: Systems, top: Mapping[str, int]) -> dict[str, int]:
    unknown = [name for name in top if name and name not in systems]
    if unknown:
        raise UsageError(f"the outputs contain no system {unknown[0]!r}", hint=did_you_mean(unknown[0], systems))
    return {system: top.get(system, top.get("", DEFAULT_TOP)) for system in systems}


def _origins(files: Sequence[Path], systems: Systems) -> tuple[dict[str, Any], ...]:
    """Every file with its checksum, then every system with its settings."""
    described: list[dict[str, Any]] = [{"file": file.name, "sha256": sha256(file)} for file in files]
    for system, sets in systems.items():
        described.append({"system": system, "sources": len(sets), "settings": sets[0].settings})
    return tuple(described)
