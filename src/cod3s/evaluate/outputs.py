"""Read and write stored outputs: JSON lines with the record of `cod3s generate --json`.

Outputs of other models need only `source`, `relation` and `answers`, which may be plain strings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.evaluate.items import EvaluationData, Item
from cod3s.io.disk import display_name, read_json_lines
from cod3s.records import Answer, AnswerSet
from cod3s.text import clean

Systems = dict[str, list[AnswerSet]]
"""The answer sets of each system."""
Block = tuple[Sequence[Item], Systems]
"""Items with the answers of all systems to them."""
_ANSWER_FIELDS = {field.name for field in fields(Answer)}
_TOGETHER = 16  # items of a block


def append_outputs(path: Path, sets: Iterable[AnswerSet]) -> None:
    """Append an answer set per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        stream.writelines(f"{answers.to_json()}\n" for answers in sets)


def resume_outputs(path: Path) -> list[AnswerSet]:
    """The answer sets that an earlier run has appended; a last line that it could not finish is removed."""
    content = path.read_bytes() if path.exists() else b""
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        path.write_bytes(whole)
    return read_outputs(path) if whole else []


def read_outputs(path: Path) -> list[AnswerSet]:
    """The answer sets of a file; a record without a system gets the name of the file."""
    parse = partial(_answer_set, name=Path(display_name(path)).name.split(".")[0])
    hint = '{"source": "…", "relation": "effect", "answers": ["…", "…"]} is enough'
    sets = list(read_json_lines(path, parse, "a record of answers", hint))
    if not sets:
        raise FileFormatError(f"{display_name(path)} has no answers")
    return sets


def read_systems(paths: Iterable[Path]) -> Systems:
    """The answer sets of files, and of the .jsonl files of folders, by system."""
    systems: Systems = {}
    for file in output_files(paths):
        for answers in read_outputs(file):
            systems.setdefault(answers.system, []).append(answers)
    return systems


def output_files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files among `paths`, and the .jsonl files of the folders."""
    for path in paths:
        files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        if not files:
            raise Cod3sError(f"{path} has no .jsonl files of answers")
        yield from files


def sources_of(systems: Mapping[str, Sequence[AnswerSet]], data: EvaluationData | None) -> EvaluationData:
    """The items that the outputs answer: those of `data`, or, without data, the sources of the outputs."""
    answered = {(answers.relation, clean(answers.source)): None for sets in systems.values() for answers in sets}
    if data is None:
        return EvaluationData("stored outputs", "", tuple(Item(*key) for key in answered))
    items = tuple(item for item in data.items if (item.relation, item.source) in answered)
    if not items:
        raise Cod3sError(
            f"the outputs do not answer any source of {data.name}", hint="give the data that they answer"
        )
    return replace(data, items=items)


def stored_blocks(systems: Mapping[str, Sequence[AnswerSet]], items: Sequence[Item]) -> Iterator[Block]:
    """The items, a few at a time, with the answers that systems have to them."""
    by_source: dict[tuple[str, str], list[tuple[str, AnswerSet]]] = {}
    for name, sets in systems.items():
        for answers in sets:
            by_source.setdefault((answers.relation, clean(answers.source)), []).append((name, answers))
    for start in range(0, len(items), _TOGETHER):
        block = items[start : start + _TOGETHER]
        of_block: Systems = {name: [] for name in systems}
        for key in dict.fromkeys((item.relation, clean(item.source)) for item in block):
            for name, answers in by_source.pop(key, ()):  # an item may stand twice in the data
                of_block[name].append(answers)
        yield block, of_block


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
