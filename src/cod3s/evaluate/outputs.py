"""Stored outputs: JSON lines in the record of `cod3s generate --json` ↔ answer sets.

Outputs of other people's models need only `source`, `relation` and `answers`, which may be plain strings.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.evaluate.items import EvaluationData, Item
from cod3s.files.disk import open_text, replaced_file
from cod3s.records import Answer, AnswerSet
from cod3s.text import clean

_ANSWER_FIELDS = {field.name for field in fields(Answer)}


def write_outputs(path: Path, sets: Iterable[AnswerSet]) -> None:
    """One answer set a line; the file is there when all of it is."""
    with replaced_file(path) as partial, partial.open("w", encoding="utf-8") as stream:
        for answers in sets:
            stream.write(json.dumps(asdict(answers), ensure_ascii=False) + "\n")


def read_outputs(path: Path) -> list[AnswerSet]:
    """The answer sets of a file; where a record names no system, the file's name does."""
    found = []
    with open_text(path) as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                found.append(_answer_set(json.loads(line), path.name.split(".")[0]))
            except (ValueError, KeyError, TypeError) as error:
                raise FileFormatError(
                    f"{path}, line {number}: not a record of answers ({error!r})",
                    hint='{"source": "…", "relation": "effect", "answers": ["…", "…"]} is enough',
                ) from error
    if not found:
        raise FileFormatError(f"{path} holds no answers")
    return found


def read_systems(paths: Iterable[Path]) -> dict[str, list[AnswerSet]]:
    """The answer sets of files, and of the .jsonl files of folders, by system."""
    systems: dict[str, list[AnswerSet]] = {}
    for file in output_files(paths):
        for answers in read_outputs(file):
            systems.setdefault(answers.system, []).append(answers)
    return systems


def output_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files among `paths`, and the .jsonl files of the folders."""
    for path in paths:
        files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        if not files:
            raise Cod3sError(f"{path} holds no .jsonl files of answers")
        yield from files


def sources_of(systems: Mapping[str, Sequence[AnswerSet]], data: EvaluationData | None) -> EvaluationData:
    """What the outputs answer: the items of `data` that they have, or, without data, their own sources."""
    answered = {(own.relation, clean(own.source)): None for sets in systems.values() for own in sets}
    if data is None:
        return EvaluationData("stored outputs", "", tuple(Item(*key) for key in answered))
    kept = tuple(item for item in data.items if (item.relation, item.source) in answered)
    if not kept:
        raise Cod3sError(f"the outputs answer no source of {data.name}", hint="name the data that they answer")
    return EvaluationData(data.name, data.sha256, kept, data.questions)


def _answer_set(record: Any, name: str) -> AnswerSet:
    if not isinstance(record, dict):
        raise TypeError("not a JSON object")
    source, relation = record["source"], record["relation"]
    if not isinstance(source, str) or not isinstance(relation, str):
        raise TypeError("source and relation are not both text")
    return AnswerSet(
        source=source,
        relation=relation,
        system=str(record.get("system") or name),
        settings=dict(record.get("settings") or {}),
        answers=tuple(_answer(answer) for answer in record["answers"]),
        remarks=tuple(record.get("remarks") or ()),
    )


def _answer(content: Any) -> Answer:
    if isinstance(content, str):
        content = {"text": content}
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        raise TypeError("an answer has no text")
    known = {name: value for name, value in content.items() if name in _ANSWER_FIELDS}
    return Answer(**{"score": 0.0, "forward": 0.0, **known})
