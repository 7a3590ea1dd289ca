"""Labelled pairs to fit a critic on: verdicts, questions, and pairs of a corpus beside hard negatives."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cod3s.corpus.manifest import load_manifest
from cod3s.corpus.questions import Question
from cod3s.decode.plausibility import Pair
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.files.disk import display_name, open_text
from cod3s.files.locations import locate
from cod3s.files.tables import Row, Table, kind_of
from cod3s.signatures.signer import embed
from cod3s.text import clean
from cod3s.train.pairs import Rows, read_rows

VERDICTS = "verdicts"
"""The name of the data that verdicts are."""
ANSWERS = "answers"
"""The name of the data that good answers are."""
HELD_OUT = 5  # every fifth question that has verdicts
_WATCHED = {ANSWERS: 50}  # every fiftieth question
_WATCHED_ELSEWHERE = 10
_VERDICTS = ("yes", "partly", "no")
_TRIED = 30  # targets of other pairs, of which the most relevant becomes the negative
_SAME = 0.75  # cosine from which another target may say the same as the right target


@dataclass(frozen=True)
class LabelledPair:
    """A pair, whether it is plausible, the data it comes from, and its question (whose pairs stay together)."""

    pair: Pair
    plausible: bool
    data: str
    question: str

    @property
    def draw(self) -> int:
        """A large number that depends on the question alone."""
        return int.from_bytes(hashlib.sha256(self.question.encode()).digest()[:4], "big")

    @property
    def is_held_out(self) -> bool:
        """Whether no model may learn from it: critics are fitted on what models say of unseen pairs."""
        return self.data != ANSWERS and self.draw % HELD_OUT == 0

    @property
    def is_watched(self) -> bool:
        """Whether it chooses the best weights instead of being learned from."""
        return self.draw // HELD_OUT % _WATCHED.get(self.data, _WATCHED_ELSEWHERE) == 0


def split_watched(examples: Sequence[LabelledPair]) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """The examples to learn from, and those that choose the best weights."""
    taught = [example for example in examples if not example.is_watched]
    return taught, [example for example in examples if example.is_watched]


def question_examples(data: str, questions: Sequence[Question]) -> list[LabelledPair]:
    """Every alternative of the questions whose answer is known.

    Questions with the same alternatives count as one: Balanced COPA asks each pair of them twice.
    """
    return [
        LabelledPair(
            Pair(question.direction, clean(question.premise), clean(text)),
            number == question.answer,
            data,
            " | ".join(sorted(map(clean, question.alternatives))),
        )
        for question in questions
        if question.answer is not None
        for number, text in enumerate(question.alternatives)
    ]


def verdict_examples(path: Path) -> list[LabelledPair]:
    """The pairs that somebody has read: a table with source, relation, target and plausible (yes, partly or no).

    What is only partly plausible counts as implausible: a critic should be strict.
    """
    with open_text(path) as stream:
        table = Table(stream, display_name(path), kind_of(path) or "tsv")
        pair_of, plausible = _pairs(table), table.text("plausible")
        examples = []
        for row in table:
            if plausible(row) not in _VERDICTS:
                raise FileFormatError(
                    f"{table.name}, line {row.line}: {plausible(row)!r} is not a verdict",
                    hint=f"write {' or '.join(_VERDICTS)}",
                )
            pair = pair_of(row)
            examples.append(LabelledPair(pair, plausible(row) == "yes", VERDICTS, _question(pair)))
    return examples


def answer_examples(path: Path) -> list[LabelledPair]:
    """Good answers: a table with source, relation and target."""
    with open_text(path) as stream:
        table = Table(stream, display_name(path), kind_of(path) or "tsv")
        return [LabelledPair(pair, True, ANSWERS, _question(pair)) for pair in map(_pairs(table), table)]


def _pairs(table: Table) -> Callable[[Row], Pair]:
    relation, source, target = map(table.text, ("relation", "source", "target"))
    return lambda row: Pair(relation(row), clean(source(row)), clean(target(row)))


def _question(pair: Pair) -> str:
    return f"{pair.relation} {pair.source}"


def corpus_examples(
    corpus: Path, encoder: Encoder, *, limit: int, seed: int, split: str = "dev"
) -> list[LabelledPair]:
    """Up to `limit` pairs of each relation, each beside a wrong target of the same corpus.

    The wrong target is the most relevant to the source of a few that belong to other sources, so neither
    the style of a corpus nor its topic tells right from wrong.
    """
    manifest = load_manifest(locate(str(corpus)))
    random = np.random.default_rng(seed)
    examples: list[LabelledPair] = []
    for relation in manifest.relations:
        rows = read_rows(corpus, relation, split).first(limit)
        examples += _with_negatives(relation, rows, encoder, random)
    if not examples:
        raise Cod3sError(
            f"the {split} pairs of {corpus} give no negatives",
            hint=f"prepare a corpus with more {split} pairs, or give only other data",
        )
    return examples


def _with_negatives(
    relation: str, rows: Rows, encoder: Encoder, random: np.random.Generator
) -> Iterator[LabelledPair]:
    sources, targets = embed(encoder, rows.source), embed(encoder, rows.target)
    by_corpus: dict[str, list[int]] = {}
    for row, corpus in enumerate(rows.corpus):
        by_corpus.setdefault(corpus, []).append(row)
    for row, source in enumerate(rows.source):
        others = np.array([other for other in by_corpus[rows.corpus[row]] if rows.source[other] != source])
        if len(others) > _TRIED:
            others = random.choice(others, _TRIED, replace=False)
        if len(others):
            others = others[targets[others] @ targets[row] < _SAME]
        if not len(others):
            continue
        wrong = others[np.argmax(targets[others] @ sources[row])]
        question = f"{relation} {row}"
        yield LabelledPair(Pair(relation, source, rows.target[row]), True, "corpus", question)
        yield LabelledPair(Pair(relation, source, rows.target[wrong]), False, "corpus", question)
