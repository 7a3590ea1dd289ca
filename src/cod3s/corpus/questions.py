"""Read evaluation questions: COPA and Balanced-COPA XML, SuperGLUE COPA and e-CARE JSON lines.

A file is recognized by its content. A question that cannot be read is an error, because nobody would notice an
evaluation on half a set.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers import expat

from cod3s.errors import FileFormatError
from cod3s.io.binary import refuse_binary
from cod3s.io.disk import display_name, read_json_lines, read_start, spooled

MAX_XML_BYTES = 1 << 26
"""The real files have under a megabyte."""


@dataclass(frozen=True)
class Question:
    """A premise and a question: which alternative is its more plausible cause or effect?"""

    id: str
    premise: str
    direction: str  # what is asked for: cause or effect
    alternatives: tuple[str, ...]
    answer: int | None  # the index of the right alternative; None if the set does not say


def read_questions(path: str | Path) -> list[Question]:
    """All questions of a file (`-` is standard input), in its order."""
    with spooled(Path(path)) as file:
        return _read(file)


def _read(file: Path) -> list[Question]:
    name = display_name(file)
    start = read_start(file)
    refuse_binary(start, name)
    start = start.removeprefix(codecs.BOM_UTF8).lstrip()
    if not start:
        raise FileFormatError(f"{name} is empty")
    if start.startswith(b"<"):
        questions = list(_read_xml(file))
    elif start.startswith(b"{"):
        questions = list(read_json_lines(file, _parse_record, "a question"))
    else:
        raise FileFormatError(
            f"{name}, line 1: not a known format of questions",
            hint="known formats are COPA's XML, and the JSONL of SuperGLUE's COPA and of e-CARE",
        )
    if not questions:
        raise FileFormatError(f"{name} contains no questions")
    return questions


def _parse_record(record: Any) -> Question:
    if not isinstance(record, dict):
        raise TypeError("not a JSON object")
    return _find_layout(record).question(record)


@dataclass(frozen=True)
class _Layout:
    """The names of the fields of a JSONL set."""

    id: str
    direction: str
    alternatives: tuple[str, ...]

    def question(self, record: dict[str, Any]) -> Question:
        texts = [record[name] for name in ("premise", *self.alternatives)]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            raise ValueError("the premise or an alternative is not text")
        answer = record.get("label")
        if answer is not None and (type(answer) is not int or answer not in range(len(self.alternatives))):
            raise ValueError(f"the label is {answer!r}, but must be 0 or 1")
        premise, *alternatives = texts
        return Question(
            str(record[self.id]), premise, _direction(record[self.direction]), tuple(alternatives), answer
        )


_LAYOUTS = (
    _Layout("idx", "question", ("choice1", "choice2")),  # SuperGLUE COPA
    _Layout("index", "ask-for", ("hypothesis1", "hypothesis2")),  # e-CARE
)


def _find_layout(record: dict[str, Any]) -> _Layout:
    for layout in _LAYOUTS:
        if {"premise", layout.direction, *layout.alternatives} <= record.keys():
            return layout
    raise ValueError(f"it has the fields {', '.join(sorted(record)[:8])}, which no known set has")


def _direction(value: Any) -> str:
    if value not in ("cause", "effect"):
        raise ValueError(f"it must ask for cause or effect, not {value!r}")
    return str(value)


def _read_xml(file: Path) -> Iterator[Question]:
    name = display_name(file)
    content = read_start(file, MAX_XML_BYTES + 1)
    if len(content) > MAX_XML_BYTES:
        raise FileFormatError(
            f"{name} is larger than {MAX_XML_BYTES >> 20} MB, which is too much for a set of questions"
        )
    items = _Items()
    parser = expat.ParserCreate()
    # COPA's files name an external DTD, which is never fetched. Definitions inside a file are refused before they
    # are read, because an entity can grow without end or name a local file.
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    parser.StartDoctypeDeclHandler = items.doctype
    parser.EntityDeclHandler = items.refuse_entity
    parser.SkippedEntityHandler = items.refuse_entity
    parser.StartElementHandler = items.start
    parser.EndElementHandler = items.end
    parser.CharacterDataHandler = items.text
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise FileFormatError(f"{name}, line {error.lineno}: not well-formed XML; {error}") from error
    except (ValueError, LookupError) as error:  # LookupError: an encoding that Python does not know
        raise FileFormatError(f"{name}, line {parser.CurrentLineNumber}: not a question; {error}") from error
    yield from items.questions


class _Items:
    """Collects COPA's <item> elements while the file is parsed."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self._attributes: dict[str, str] | None = None
        self._fields: dict[str, str] = {}
        self._field = ""

    def doctype(self, _name: str, _system: str | None, _public: str | None, has_definitions: bool) -> None:
        if has_definitions:
            raise ValueError("the file has a document type definition (DTD) inside, which is not read")

    def refuse_entity(self, name: str, *_details: Any) -> None:
        raise ValueError(f"the file uses the entity {name!r}, and entities are not read")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "item":
            self._attributes, self._fields, self._field = attributes, {}, ""
        elif self._attributes is not None:
            if tag in self._fields:
                raise ValueError(f"the item has two <{tag}>")
            self._field, self._fields[tag] = tag, ""
        elif tag != "copa-corpus":
            raise ValueError(f"<{tag}> where <item> was expected")

    def text(self, data: str) -> None:
        if self._field:
            self._fields[self._field] += data

    def end(self, tag: str) -> None:
        self._field = ""
        if tag == "item":
            self.questions.append(_question(self._attributes or {}, self._fields))
            self._attributes = None


def _question(attributes: dict[str, str], fields: dict[str, str]) -> Question:
    texts = [" ".join(fields.get(name, "").split()) for name in ("p", "a1", "a2")]
    if not all(texts):
        raise ValueError("an item needs <p>, <a1> and <a2>, each with text")
    answer = attributes.get("most-plausible-alternative")
    if answer not in ("1", "2", None):
        raise ValueError(f"the most plausible alternative is {answer!r}, but must be 1 or 2")
    premise, *alternatives = texts
    return Question(
        attributes.get("id", ""),
        premise,
        _direction(attributes.get("asks-for")),
        tuple(alternatives),
        None if answer is None else int(answer) - 1,
    )
