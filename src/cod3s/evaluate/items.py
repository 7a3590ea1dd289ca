"""Read the data of an evaluation: sources with a relation, and gold answers if known.

The formats: COPA's XML, the JSONL of SuperGLUE's COPA and of e-CARE; .tsv, .csv and .jsonl with `source` and
optionally `relation` and `target`; and plain text with a source per line.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from cod3s.corpus.questions import Question, read_questions
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.disk import display_name, open_text, sha256, spooled
from cod3s.io.tables import Row, Table, guessed_kind, kind_of, open_table, read_sentences
from cod3s.text import clean


@dataclass(frozen=True)
class Item:
    """One source to answer; `target` is the right answer, empty if unknown."""

    relation: str
    source: str
    target: str = ""


@dataclass(frozen=True)
class EvaluationData:
    """The items of a file, relations taking turns, and its questions if it has any."""

    name: str
    sha256: str
    items: tuple[Item, ...]
    questions: tuple[Question, ...] = ()

    def first(self, limit: int | None) -> "EvaluationData":
        """The first `limit` items of each relation; all questions stay, since the bars come from them."""
        items = [item for turn, item in _in_turns(self.items) if limit is None or turn < limit]
        return replace(self, items=tuple(items))

    @property
    def asked(self) -> tuple[Question, ...]:
        """The questions whose sources are among the items."""
        sources = {(item.relation, item.source) for item in self.items}
        return tuple(
            question for question in self.questions if (question.direction, clean(question.premise)) in sources
        )

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of items by relation."""
        return dict(Counter(item.relation for item in self.items))


def read_data(path: Path, relation: str = "") -> EvaluationData:
    """The items of `path`; `relation` is for sources whose file does not name it."""
    questions: tuple[Question, ...] = ()
    with spooled(path) as file:
        digest = sha256(file) if file.is_file() else ""
        kind = _kind(file, is_named=str(path) != "-")
        if kind == "questions":
            questions = tuple(read_questions(file))
            items = [_question_item(question) for question in questions]
        elif kind == "lines":
            items = [Item(relation, source) for source in read_sentences(file)]
        else:
            items = _table_items(file, kind, relation)
    if not items:
        raise FileFormatError(f"{display_name(path)} has no sources")
    if not all(item.relation for item in items):
        raise Cod3sError(
            f"{display_name(path)} does not name the relation of its sources",
            hint="add --relation effect or --relation cause",
        )
    ordered = sorted(_in_turns(items), key=lambda numbered: numbered[0])  # stable
    return EvaluationData(file.name, digest, tuple(item for _, item in ordered), questions)


def _in_turns(items: Iterable[Item]) -> list[tuple[int, Item]]:
    """Each item with its number among those of its relation."""
    seen: Counter[str] = Counter()
    turns = []
    for item in items:
        turns.append((seen[item.relation], item))
        seen[item.relation] += 1
    return turns


def _kind(path: Path, is_named: bool) -> str:
    """What a file holds, by its name or its first line: lines, questions, or a kind of table with sources."""
    kind = "lines" if ".txt" in path.suffixes else kind_of(path)
    if kind is None and not is_named:
        with open_text(path) as stream:
            first = next(stream, "").lstrip()
        kind = None if first.startswith("<") else guessed_kind(first)
    if kind in (None, "lines"):
        return kind or "questions"
    with open_table(path, kind) as table:
        # A JSON object says its fields itself.
        fields = (
            table.header if table.kind != "jsonl" else [name for row in islice(table, 1) for name in row.record]
        )
    if "source" in fields:
        return str(kind)
    return "questions" if is_named or kind == "jsonl" else "lines"


def _question_item(question: Question) -> Item:
    target = "" if question.answer is None else clean(question.alternatives[question.answer])
    return Item(question.direction, clean(question.premise), target)


def _table_items(path: Path, kind: str, relation: str) -> list[Item]:
    with open_table(path, kind) as table:
        source, row_relation, target = (
            table.text("source"),
            _optional(table, "relation"),
            _optional(table, "target"),
        )
        return [
            Item(row_relation(row) or relation, clean(source(row)), target(row) and clean(target(row)))
            for row in table
        ]


def _optional(table: Table, name: str) -> Callable[[Row], str]:
    """A field that a table, or a JSON record, may lack: its stripped text, or nothing."""
    if table.kind != "jsonl" and name not in table.header:
        return lambda _row: ""
    get, checked = table.field(name), table.text(name)
    return lambda row: "" if get(row) is None else checked(row).strip()
