"""What a model learns to judge: answers that were read, and wrong answers of the same style."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cod3s.corpus.verdicts import read_verdicts
from cod3s.model.reader import Reader
from cod3s.text import for_modelling
from cod3s.tokens.vocabulary import Vocabulary
from cod3s.train.pairs import PairTable, Ragged, text_keys
from cod3s.train.tasks import Shares, Task, judgement_task

Numbers = npt.NDArray[np.intp]
PLAUSIBLE = {"yes": 1.0, "partly": 0.4, "no": 0.0}
"""How likely a model should find the verdict yes, by the verdict of a reader."""
_TRIED = 8  # random sources, of which the one with the nearest signature lends its target


@dataclass(frozen=True)
class Verdicts:
    """Sources, targets and how plausible readers found them."""

    source: list[str] = field(default_factory=list)
    target: list[str] = field(default_factory=list)
    plausible: list[float] = field(default_factory=list)


def verdicts_by_relation(path: Path, split: str) -> dict[str, Verdicts]:
    """The verdicts of a split, by relation; a table without a column `split` is for train."""
    by_relation: dict[str, Verdicts] = {}
    for verdict in read_verdicts(path, split, unsplit="train"):
        verdicts = by_relation.setdefault(verdict.relation, Verdicts())
        verdicts.source.append(for_modelling(verdict.source))
        verdicts.target.append(for_modelling(verdict.target))
        verdicts.plausible.append(PLAUSIBLE[verdict.plausible])
    return by_relation


def verdict_task(
    relation: str, verdicts: Verdicts, reader: Reader, vocabulary: Vocabulary, positions: int
) -> Task:
    """Judge the answers that were read, each once per epoch; those that `positions` cannot hold are left out."""
    targets = Ragged(map(vocabulary.encode_text, verdicts.target))
    shares = (targets.lengths <= positions - 2).astype(np.float64)
    keys = text_keys(verdicts.source)
    read = Ragged(map(reader.read, verdicts.source))
    return judgement_task(relation, read, keys, targets, np.array(verdicts.plausible), shares)


def wrong_tasks(
    relation: str, tables: Mapping[str, PairTable], inverses: Mapping[str, str], share: float, seed: int
) -> list[Task]:
    """Judge wrong answers in the style of right ones, one for each pair with the probability `share`.

    For every second pair, it is an answer to the same source in the inverse relation, if there is one: an effect
    that is offered as a cause. For the others, it is the answer to another source, with a similar signature.
    """
    pairs, draw = tables[relation], np.random.default_rng(seed)
    rows = np.arange(len(pairs))
    inverse = tables.get(inverses.get(relation, ""), None)
    swapped = np.zeros(len(pairs), bool)
    tasks = []

    def judge(rows: Numbers, targets: Ragged, shares: Shares) -> None:
        read, keys = pairs.read.take(rows), pairs.sources[rows]
        tasks.append(judgement_task(relation, read, keys, targets, np.zeros(len(rows)), share * shares))

    if inverse is not None and len(inverse):
        order = np.argsort(inverse.sources, kind="stable")
        first = np.searchsorted(inverse.sources, pairs.sources, sorter=order)
        last = np.searchsorted(inverse.sources, pairs.sources, side="right", sorter=order)
        swapped = (draw.random(len(pairs)) < 0.5) & (last > first)
        chosen = order[(first + (draw.random(len(pairs)) * (last - first)).astype(int))[swapped]]
        judge(rows[swapped], inverse.target.take(chosen), pairs.shares[swapped] * (inverse.shares[chosen] > 0))
    rest = rows[~swapped]
    chosen = _similar_rows(pairs, rest, draw)
    other = pairs.sources[chosen] != pairs.sources[rest]
    judge(rest, pairs.target.take(chosen), pairs.shares[rest] * other * (pairs.shares[chosen] > 0))
    return tasks


def _similar_rows(pairs: PairTable, rows: Numbers, draw: np.random.Generator) -> Numbers:
    """For each row another one, whose source has the nearest signature of a few."""
    tokens = np.array([pairs.source_signature[row] for row in range(len(pairs))], np.int32)
    best = np.full(len(rows), -1, np.int64)
    chosen: Numbers = rows.copy()
    for _ in range(_TRIED):
        tried = draw.integers(len(pairs), size=len(rows))
        same = (tokens[tried] == tokens[rows]).sum(axis=1)
        same[pairs.sources[tried] == pairs.sources[rows]] = -1
        better = same > best
        chosen[better], best[better] = tried[better], same[better]
    return chosen
