"""Answers as JSON that fits a schema: what is sent, how replies are read, and which field is compared."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cod3s.errors import UsageError, require
from cod3s.text import is_visible

FENCE = re.compile(r"```(?:\w+)?\s*(.*?)```", re.DOTALL)
_LONGEST_REASON = 300


class InvalidAnswerError(Exception):
    """An answer that does not fit its schema; the text is the reason, which the model is told."""


@dataclass(frozen=True)
class Structure:
    """A JSON schema, or the pydantic model that it comes from, and the field whose value is compared."""

    schema: Mapping[str, Any]
    compare: str = ""
    model: Any = None  # a pydantic model, of which records become instances

    def response_format(self, list_size: int = 0) -> dict[str, Any]:
        """The format that servers are sent: the schema, or that of a list of answers with their probabilities."""
        return {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": self._of_list() if list_size else dict(self.schema)},
        }

    def read(self, text: str) -> tuple[str, Any]:
        """The value that is compared as text, and the record; an InvalidAnswerError if it does not fit."""
        record = parse_json(text)
        jsonschema = require("jsonschema", "llm")
        problem = next(jsonschema.Draft202012Validator(self.schema).iter_errors(record), None)
        if problem is not None:
            location = f" at {problem.json_path}" if problem.json_path != "$" else ""
            raise InvalidAnswerError(f"{problem.message[:_LONGEST_REASON]}{location}")
        value = record
        for name in self.compare.split(".") if self.compare else ():
            if not isinstance(value, Mapping) or name not in value:
                raise InvalidAnswerError(f"there is no field {self.compare!r}")
            value = value[name]
        compared = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if not is_visible(compared):
            raise InvalidAnswerError(f"the field {self.compare!r} is empty" if self.compare else "it is empty")
        return compared, record

    def typed(self, record: Any) -> Any:
        """The record as an instance of the pydantic model, if there is one."""
        return record if self.model is None else self.model.model_validate(record)

    def _of_list(self) -> dict[str, Any]:
        answer = {"type": "object", "properties": {"answer": self.schema, "probability": {"type": "number"}}}
        answer["required"] = ["answer", "probability"]
        answers = {"type": "array", "items": answer}
        return {"type": "object", "properties": {"answers": answers}, "required": ["answers"]}


def read_structure(schema: Any, compare: str) -> Structure | None:
    """The structure that a JSON schema or a pydantic model describes; None without a schema."""
    if schema is None:
        if compare:
            raise UsageError(f"there is no schema that has the field {compare!r}", hint="give a JSON schema, too")
        return None
    model = schema if hasattr(schema, "model_json_schema") else None
    content = model.model_json_schema() if model is not None else schema
    if not isinstance(content, Mapping):
        raise UsageError(
            f"the schema is {type(schema).__name__}", hint="give a JSON schema as a dict, or a pydantic model"
        )
    jsonschema = require("jsonschema", "llm")
    try:
        jsonschema.Draft202012Validator.check_schema(content)
    except jsonschema.SchemaError as error:
        raise UsageError(f"this is not a JSON schema: {error.message[:_LONGEST_REASON]}") from error
    _check_field(content, compare)
    return Structure(content, compare, model)


def parse_json(text: str) -> Any:
    """The JSON value in a reply, which may be fenced; an InvalidAnswerError if there is none."""
    fenced = FENCE.search(text)
    try:
        return json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InvalidAnswerError(f"it is not valid JSON ({reason})") from error


def _check_field(schema: Mapping[str, Any], compare: str) -> None:
    """Fail early if the schema itself says that the compared field does not exist."""
    known = schema.get("properties")
    name = compare.split(".", maxsplit=1)[0]
    if name and isinstance(known, Mapping) and name not in known:
        raise UsageError(f"the schema has no field {name!r}", hint=f"choose one of: {', '.join(known)}")
