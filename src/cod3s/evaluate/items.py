"""What is evaluated on: a file of questions or of sources → items with a relation, and gold answers where known.

Known are COPA's XML, the JSONL of SuperGLUE's COPA and of e-CARE; .tsv, .csv and .jsonl with `source` and maybe
`relation` and `target`; and plain text, a source a line.
"""

import csv
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cod3s.corpus.questions import Question, read_questions
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.files import open_text, sha256
from cod3s.sentences import read_column, read_sentences
from cod3s.text import clean

TABLES = (".tsv", ".csv", ".jsonl")


@dataclass(frozen=True)
class Item:
    """One source to answer; `target` is the right answer, empty where nobody knows it."""

    relation: str
    source: str
    target: str = ""


@dataclass(frozen=True)
class EvaluationData:
    """The items of a file in its order, and its questions where it asks some."""

    name: str
    sha256: str
    items: tuple[Item, ...]
    questions: tuple[Question, ...] = ()

    def first(self, limit: int | None) -> "EvaluationData":
        """The first `limit` items of each relation; the questions stay whole, scoring them is cheap."""
        seen: Counter[str] = Counter()
        kept = []
        for item in self.items:
            seen[item.relation] += 1
            if limit is None or seen[item.relation] <= limit:
                kept.append(item)
        return EvaluationData(self.name, self.sha256, tuple(kept), self.questions)

    @property
    def counts(self) -> dict[str, int]:
        """Items by relation."""
        return dict(Counter(item.relation for item in self.items))


def read_data(path: Path, relation: str = "") -> EvaluationData:
    """The items of `path`; `relation` is that of sources whose file does not say."""
    digest = sha256(path) if path.is_file() else ""
    questions: tuple[Question, ...] = ()
    if path.suffix in TABLES and "source" in _fields(path):
        items = _read_table(path, relation)
    elif path.suffix == ".txt":
        items = [Item(_known(relation, path), source) for source in read_sentences(path)]
    else:
        questions = tuple(read_questions(path))
        items = [_asked(question) for question in questions]
    if not items:
        raise FileFormatError(f"{path} holds no sources")
    return EvaluationData(path.name, digest, tuple(items), questions)


def _asked(question: Question) -> Item:
    target = "" if question.answer is None else question.alternatives[question.answer]
    return Item(question.direction, clean(question.premise), target and clean(target))


def _fields(path: Path) -> set[str]:
    """The names in a table's header, or those of the first JSON record; none where neither can be read."""
    with open_text(path) as stream:
        if path.suffix != ".jsonl":
            return set(next(csv.reader(stream, delimiter="\t" if path.suffix == ".tsv" else ","), []))
        try:
            record = json.loads(stream.readline())
        except json.JSONDecodeError:
            return set()
    return set(record) if isinstance(record, dict) else set()


def _read_table(path: Path, relation: str) -> list[Item]:
    sources = _column(path, "source")
    fields = _fields(path)
    relations = _column(path, "relation") if "relation" in fields else [_known(relation, path)] * len(sources)
    targets = _column(path, "target") if "target" in fields else [""] * len(sources)
    return [
        Item(own, clean(source), target.strip() and clean(target))
        for source, own, target in zip(sources, relations, targets, strict=True)
    ]


def _column(path: Path, name: str) -> list[str]:
    with open_text(path) as stream:
        return list(read_column(stream, path, name))


def _known(relation: str, path: Path) -> str:
    if not relation:
        raise Cod3sError(f"{path} does not say which relation its sources have", hint="give it with --relation")
    return relation
