"""The records of a study, and its folder: `study.json` (what is fixed before collection) and `items.jsonl`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import read_json, read_json_lines, replaced_folder, write_json, write_json_lines

STUDY_FILE = "study.json"
ITEMS_FILE = "items.jsonl"
_FORMAT = 1

ANSWER, CHECK, GOLD = "answer", "check", "gold"
"""Kinds of items: a system's answer, an attention check, a known right or wrong alternative."""
RIGHT, WRONG = "right", "wrong"


@dataclass(frozen=True)
class Credit:
    """One occurrence of an item's statement in the outputs."""

    system: str
    position: int  # among the answers of its record, from 1
    rank: int | None = None  # by likelihood among the same answers, from 1; None if likelihoods are unknown


@dataclass(frozen=True)
class Item:
    """One statement to rate, once for all systems that wrote it.

    `label` is `right` or `wrong` if the statement is a gold alternative. An answer that is also gold has both
    credits and a label, so select gold items by their label, not by their kind.
    """

    id: str
    kind: str
    statement: str
    relation: str = ""
    source: str = ""
    target: str = ""
    credits: tuple[Credit, ...] = ()
    expected: tuple[int, ...] = ()  # the scores that pass, for checks
    label: str = ""


@dataclass(frozen=True)
class Exclusion:
    """The rules that exclude raters, fixed before collection. None switches a rule off."""

    max_failed_checks: int | None = 1  # more failures than this exclude a rater
    min_median_seconds: float | None = 1.0  # a lower median time per item excludes
    min_gold_gap: float | None = None  # mean score of right minus wrong gold items; a smaller gap excludes


@dataclass(frozen=True)
class Study:
    """Everything that is fixed when a study is created."""

    id: str  # random; tells the database of another study apart
    name: str
    created: str
    seed: int
    raters_per_item: int
    per_rater: int  # items per rater, not counting checks
    question: str
    scale: tuple[str, ...]  # the label of every score, from 0
    instructions: str  # paragraphs with empty lines between them
    completion_code: str
    admin_token_hash: str
    templates: Mapping[str, str] = field(default_factory=dict)  # relation → its completed statement
    exclusion: Exclusion = field(default_factory=Exclusion)
    claim_minutes: int = 60  # an item that stays unrated for this long is free for others again
    outputs: tuple[Mapping[str, Any], ...] = ()  # the files read: name, SHA-256, systems and their settings
    version: str = ""
    format: int = _FORMAT

    @property
    def top_score(self) -> int:
        return len(self.scale) - 1

    @property
    def paragraphs(self) -> list[str]:
        """The instructions, paragraph by paragraph."""
        return [part.strip() for part in self.instructions.split("\n\n") if part.strip()]


def write_study(folder: Path, study: Study, items: Sequence[Item]) -> None:
    """Write a new study folder, all or nothing; an error if the folder is not empty."""
    if folder.exists() and any(folder.iterdir()):
        raise Cod3sError(
            f"{folder} is not empty",
            hint="a study is never replaced, because of its ratings: name another folder, or delete this one",
        )
    with replaced_folder(folder) as unfinished:
        write_json(unfinished / STUDY_FILE, asdict(study))
        write_json_lines(unfinished / ITEMS_FILE, map(asdict, items))


def read_study(folder: Path) -> Study:
    """The study in `folder`."""
    path = folder / STUDY_FILE
    if not path.is_file():
        raise Cod3sError(
            f"{folder} does not contain a study", hint="create it with `cod3s study new outputs/*.jsonl -o study/`"
        )
    content = read_json(path)
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise FileFormatError(f"{path} does not describe a study")
    if content["format"] > _FORMAT:
        raise FileFormatError(f"{folder} has the newer format {content['format']}", hint="upgrade cod3s")
    try:
        return parse_record(Study, content)
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"{path} does not describe a study ({error})") from error


def read_items(folder: Path) -> list[Item]:
    """The items of the study in `folder`, in the study's order."""
    return list(read_json_lines(folder / ITEMS_FILE, partial(parse_record, Item), "an item"))
