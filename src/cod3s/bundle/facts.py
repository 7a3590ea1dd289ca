"""A bundle: the folder that generation opens. `bundle.json` says what is in it.

bundle/
  bundle.json      what it is, which model plays which role, checksums of everything below
  tokens.model     the text pieces (SentencePiece, or a pretrained model's tokenizer as JSON)
  source.json      the tokenizer of the encoder that the bundle carries, if it does
  code/            the hyperplanes that sign
  bins/            a file of bins per relation
  models/NAME/     the engine's models, with final weights
  words/           a graph of related words per relation, if requested
  critic/          the critic that judges answers, if attached
  gate/            what notices sensitive sources, if fitted (recipes/fit_gate.py)
  MODEL_CARD.md    for people
"""

import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cod3s.errors import BundleError
from cod3s.io.checked_records import parse_record
from cod3s.io.disk import read_json, sha256, write_json
from cod3s.options import SEED

FORMAT = 2
NAME = "bundle.json"
_LONGEST_NAME = 1000  # of a file with its folders; systems refuse paths of more than 4,096 bytes
_PLAIN_NAME = re.compile(r"(?!\.\.?$)[^/\\\0]{1,200}")
"""A name that stays in its folder, whatever the system: no separators, and neither `.` nor `..`."""


@dataclass(frozen=True)
class BundleFacts:
    """The content of bundle.json. A role's tag, which starts its prompts or targets, is `<RELATION:ROLE>`."""

    name: str
    encoder: str  # id of the encoder that signs
    bits: int
    bits_per_token: int
    positional: bool
    shape: str
    quantization: str
    relations: dict[str, dict[str, str]]  # name → template, inverse
    models: dict[str, dict[str, str]]  # relation → role → folder under models/
    licence: str = ""
    seed: int = SEED  # of the hyperplanes
    levels: int = 255  # of the weights, if they are in int8
    decoding: dict[str, Any] = field(default_factory=dict)  # options with other defaults than the package's
    own_encoder: str = ""  # the model under models/ that is a copy of the encoder that signs, if there is one
    critic: str = ""  # the folder of the critic that judges answers, if any
    judges: bool = False  # whether its language model has learned to say if an answer is plausible
    training: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)  # path → sha256
    format: int = FORMAT

    @property
    def model_names(self) -> list[str]:
        """The distinct folders under models/ of the models that play the roles."""
        return list(dict.fromkeys(name for roles in self.models.values() for name in roles.values()))


def write_facts(folder: Path, facts: BundleFacts) -> None:
    """Write bundle.json with the checksums of every other file in the folder."""
    files = {path.relative_to(folder).as_posix(): sha256(path) for path in _files(folder)}
    write_json(folder / NAME, {**asdict(facts), "files": files})


def read_facts(folder: Path) -> BundleFacts:
    """The content of a bundle's bundle.json; other files are not checked."""
    if not is_bundle(folder):
        raise BundleError(f"{folder} is not a bundle: it has no {NAME}", hint="make it with `cod3s bundle export`")
    content = read_json(folder / NAME)
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise BundleError(f"{folder / NAME} does not describe a bundle", hint="export it again")
    if content["format"] != FORMAT:
        raise BundleError(
            f"{folder} has bundle format {content['format']}, but this version of cod3s reads format {FORMAT}",
            hint="upgrade cod3s" if content["format"] > FORMAT else "export it again",
        )
    try:
        facts = parse_record(BundleFacts, content)
        _check_names(facts)
    except (TypeError, ValueError) as error:
        raise BundleError(
            f"{folder / NAME} does not describe a bundle: {error}", hint="export it again"
        ) from error
    return facts


def _check_names(facts: BundleFacts) -> None:
    """Raise a ValueError if the facts name anything outside the bundle's folder."""
    optional = [name for name in (facts.own_encoder, facts.critic) if name]
    for name in (*facts.models, *facts.model_names, *optional):
        if not _PLAIN_NAME.fullmatch(name):
            raise ValueError(f"{name[:60]!r} cannot be the name of a relation, a model or a folder")
    for name in facts.files:
        if len(name) > _LONGEST_NAME or not all(_PLAIN_NAME.fullmatch(part) for part in name.split("/")):
            raise ValueError(f"it names a file that cannot be in a bundle: {name[:60]!r}")
    for relation in facts.models:
        if "template" not in facts.relations.get(relation, {}):
            raise ValueError(f"the relation {relation!r} has no template")


def is_bundle(folder: Path) -> bool:
    """Whether a folder says that it is a bundle."""
    return (folder / NAME).is_file()


def _files(folder: Path) -> list[Path]:
    """Every file but bundle.json; a hidden folder is what a killed command left behind."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != NAME)
    return sorted(path for path in files if not path.relative_to(folder).parts[0].startswith("."))
