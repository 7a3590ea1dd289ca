"""Labelled pairs to fit a critic on: verdicts, questions, and pairs of a corpus beside hard negatives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cod3s.corpus.manifest import load_manifest
from cod3s.corpus.questions import Question
from cod3s.corpus.verdicts import read_verdicts
from cod3s.critic.likelihoods import Pair
from cod3s.encode import Encoder
from cod3s.errors import Cod3sError
from cod3s.signatures.signer import embed
from cod3s.text import clean
from cod3s.train.pairs import read_rows

VERDICTS = "verdicts"
"""The name of the data of pairs that were read."""
_TRIED = 30  # targets of other pairs, of which the most relevant becomes the negative
_SAME = 0.75  # cosine from which another target may say the same as the right target


@dataclass(frozen=True)
class LabelledPair:
    """A pair, whether it is plausible, the data it comes from, and its question (whose pairs stay together).

    What is only `partly` plausible counts as implausible: a critic should be strict.
    """

    pair: Pair
    plausible: bool
    data: str
    question: str


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
    """Pairs that were read: a table with source, relation, target and plausible (yes, partly or no).

    Of a table with splits, only the rows of dev: models learn from those of train, and figures are made with test.
    """
    examples = []
    for verdict in read_verdicts(path, "dev", unsplit="dev"):
        pair = Pair(verdict.relation, clean(verdict.source), clean(verdict.target))
        examples.append(LabelledPair(pair, verdict.plausible == "yes", VERDICTS, _question(pair)))
    return examples


def _question(pair: Pair) -> str:
    return f"{pair.relation} {pair.source}"


def corpus_examples(corpus: Path, encoder: Encoder, *, limit: int, seed: int) -> list[LabelledPair]:
    """Up to `limit` dev pairs of each relation, each beside a wrong target of the same corpus.

    The wrong target is the most relevant to the source of a few that belong to other sources, so neither
    the style of a corpus nor its topic tells right from wrong.
    """
    random = np.random.default_rng(seed)
    examples: list[LabelledPair] = []
    for relation in load_manifest(corpus).relations:
        rows = read_rows(corpus, relation, "dev").first(limit)
        for row, wrong in _relevant_negatives(rows.source, rows.target, rows.corpus, encoder, random):
            question, source = f"{relation} {row}", rows.source[row]
            examples += [
                LabelledPair(Pair(relation, source, rows.target[row]), True, "corpus", question),
                LabelledPair(Pair(relation, source, rows.target[wrong]), False, "corpus", question),
            ]
    if not examples:
        raise Cod3sError(
            f"the dev pairs of {corpus} give no negatives",
            hint="prepare a corpus with more dev pairs, or give only other data",
        )
    return examples


def _relevant_negatives(
    sources: Sequence[str],
    targets: Sequence[str],
    groups: Sequence[str],
    encoder: Encoder,
    random: np.random.Generator,
) -> Iterator[tuple[int, int]]:
    """Each row beside the row of the same group whose target is wrong for it but relevant to its source."""
    of_sources, of_targets = embed(encoder, sources), embed(encoder, targets)
    by_group: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        by_group.setdefault(group, []).append(row)
    for row, source in enumerate(sources):
        alike = by_group[groups[row]]
        drawn = random.choice(alike, _TRIED, replace=False) if len(alike) > _TRIED else np.array(alike)
        others = np.array([other for other in drawn.tolist() if sources[other] != source], dtype=int)
        others = others[of_targets[others] @ of_targets[row] < _SAME]
        if len(others):
            yield row, int(others[np.argmax(of_targets[others] @ of_sources[row])])
