"""Read the rows of a table of prompts: templates, columns with prompts or messages, ids."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

from cod3s.ask.prompts import Prompt, read_prompt
from cod3s.errors import Cod3sError, FileFormatError, UsageError, did_you_mean, require
from cod3s.io.disk import read_json
from cod3s.io.tables import open_table

MESSAGES, PROMPT, ID = "messages", "prompt", "id"


@dataclass(frozen=True)
class TableRow:
    """A row: its number from 0, its id (or its number) and its prompt, or why it has none."""

    number: int
    id: Any
    prompt: Prompt | None
    problem: str = ""


def read_rows(
    records: Iterable[Any], *, template: str = "", system: str = "", id_field: str = ID
) -> Iterator[TableRow]:
    """The rows in records, texts or messages; a bad first record is an error, later ones keep their problem."""
    if isinstance(records, str | bytes):
        raise UsageError("one text was given, but rows are needed", hint="put it in a list, or use diversify")
    fill = _template(template) if template else _prompt_of
    for number, record in enumerate(records):
        fields = record if isinstance(record, Mapping) else {PROMPT: record}
        identity = fields.get(id_field)
        try:
            prompt = read_prompt(fill(fields))
            prompt = prompt.with_system(system) if system else prompt
        except Cod3sError as error:
            if number == 0 and isinstance(error, FileFormatError):
                raise
            yield TableRow(number, number if identity is None else identity, None, error.message)
        else:
            yield TableRow(number, number if identity is None else identity, prompt)


@contextmanager
def open_records(path: Path) -> Iterator[Iterator[Mapping[str, Any]]]:
    """The records of a table: JSONL, CSV, TSV, Parquet, a `datasets` folder, or - for standard input."""
    if path.is_dir():
        yield _dataset_records(path)
        return
    with open_table(path) as table:
        if table.header:
            yield (dict(zip(table.header, row.record, strict=True)) for row in table)
        else:
            yield (row.record for row in table)


def _dataset_records(folder: Path) -> Iterator[Mapping[str, Any]]:
    """The records of a folder that `Dataset.save_to_disk` wrote."""
    state = folder / "state.json"
    if not state.is_file():
        raise FileFormatError(
            f"{folder} is not a dataset: it has no state.json",
            hint="name a file, or a folder from Dataset.save_to_disk (a single split)",
        )
    ipc, arrow = require("pyarrow.ipc", "corpus"), require("pyarrow", "corpus")
    try:
        for name in [entry["filename"] for entry in read_json(state)["_data_files"]]:
            with arrow.memory_map(str(folder / Path(name).name)) as source, ipc.open_stream(source) as batches:
                for batch in batches:
                    yield from batch.to_pylist()
    except (KeyError, TypeError, arrow.ArrowException, OSError) as error:
        raise FileFormatError(f"{folder} is not a readable dataset: {error}") from error


def _prompt_of(fields: Mapping[str, Any]) -> Any:
    """The column `messages` or, without it, `prompt`; messages in a CSV are JSON text."""
    messages = fields.get(MESSAGES)
    if messages:
        if not isinstance(messages, str):
            return [_without_empty(message) for message in messages]
        try:
            return json.loads(messages)
        except ValueError as error:
            raise UsageError(f"the column {MESSAGES!r} is not JSON: {error}") from error
    if PROMPT not in fields:
        raise FileFormatError(
            f"there is neither a column {PROMPT!r} nor {MESSAGES!r}, but {', '.join(map(str, fields)) or 'none'}",
            hint='name the columns with --prompt, for example --prompt "A review of {product}"',
        )
    prompt = fields[PROMPT]
    return "" if prompt is None else prompt


def _without_empty(message: Any) -> Any:
    """A message without the fields that a table fills with null."""
    if not isinstance(message, Mapping):
        return message
    return {name: value for name, value in message.items() if value is not None or name == "content"}


def _template(template: str) -> Callable[[Mapping[str, Any]], str]:
    """A function that fills the {columns} of a template in; doubled braces stand for braces."""
    try:
        parts = [(text, field) for text, field, _, _ in Formatter().parse(template)]
    except ValueError as error:
        raise UsageError(f"the prompt template is not readable: {error}", hint="write {{ for a brace") from error

    def fill(fields: Mapping[str, Any]) -> str:
        texts = []
        for text, name in parts:
            texts.append(text)
            if name is None:
                continue
            if name not in fields:
                raise FileFormatError(
                    f"there is no column {name!r}", hint=did_you_mean(name, map(str, fields)) if fields else ""
                )
            if fields[name] is None or fields[name] == "":
                raise UsageError(f"the column {name!r} is empty")
            texts.append(str(fields[name]))
        return "".join(texts)

    return fill
