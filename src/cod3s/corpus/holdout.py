"""Decide which pairs are held out for dev and test.

A pair's key depends on its text alone: not on the other pairs, the order of the files, the machine or a version.
Its first 64 bits put it on a line from 0 to 2^64; a fixed stretch of that line is dev, another is test, and the
rest is train. A small corpus has too few pairs there, or only pairs that share a sentence with train, so whole
groups of pairs that share sentences are held out instead.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cod3s.corpus.prepare_config import PrepareConfig

SPLITS = ("train", "dev", "test")
MAX_GROUPED_ROWS = 200_000
"""Larger corpora are always split by the line: its share holds thousands of their pairs."""

_END = 1 << 64
_Numbers = npt.NDArray[np.uint64]
_Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Line:
    """Holds out stretches of the line: `share` of it for dev, as much for test; 0 holds out nothing."""

    share: float

    def stretch(self, split: str) -> tuple[int, int]:
        """The first key of the split and the first key after it."""
        width = int(self.share * _END)
        ends = {"dev": (0, width), "test": (width, 2 * width), "train": (2 * width, _END)}
        return ends[split]

    def condition(self, relation: str, split: str) -> str:
        """An SQL condition over `key_high`: which rows of a relation belong to a split."""
        start, end = self.stretch(split)
        return f"key_high BETWEEN {start}::UBIGINT AND {end - 1}::UBIGINT" if start < end else "FALSE"


@dataclass(frozen=True)
class AtLeast:
    """How many pairs of each relation a split should have, but never more than `share` of them."""

    pairs: int
    share: float

    def of(self, pairs: int) -> int:
        return min(self.pairs, int(self.share * pairs))


def wanted_pairs(config: PrepareConfig) -> dict[str, AtLeast]:
    """How many pairs dev and test should have; empty if the user chose a --held-out share.

    The default number is an upper limit: a small corpus gives a tenth of its pairs, up to a hundred. Any other
    number is taken literally, up to a quarter of the pairs.
    """
    if config.held_out != PrepareConfig.held_out:
        return {}
    default = {"dev": PrepareConfig.dev, "test": PrepareConfig.test}
    return {
        split: AtLeast(min(number, 100), 0.1) if number == default[split] else AtLeast(number, 0.25)
        for split, number in (("dev", config.dev), ("test", config.test))
    }


@dataclass(frozen=True)
class Keys:
    """The keys of a relation's unique pairs, and the hashes of their sentences."""

    high: _Numbers  # (pairs,)
    sentences: _Numbers  # (pairs, source and target)

    def of_split(self, line: Line, split: str) -> npt.NDArray[np.bool_]:
        start, end = line.stretch(split)
        return (self.high >= start) & (self.high < end)


def read_keys(connection: Any, table: str) -> Keys:
    """The keys in sifted rows, each pair once."""
    query = f"SELECT DISTINCT key_high, source_hash, target_hash FROM {table} ORDER BY ALL"
    columns = connection.sql(query).fetchnumpy()
    sentences = np.stack([columns["source_hash"], columns["target_hash"]], axis=1)
    return Keys(columns["key_high"].astype(np.uint64), sentences.astype(np.uint64))


def fills(line: Line, relations: Mapping[str, Keys], least: Mapping[str, AtLeast]) -> bool:
    """Whether the line holds out enough pairs that share no sentence with train."""
    train = np.concatenate([keys.sentences[keys.of_split(line, "train")].ravel() for keys in relations.values()])
    for keys in relations.values():
        clean = ~np.isin(keys.sentences, train).any(axis=1)
        for split, wanted in least.items():
            if np.count_nonzero(clean & keys.of_split(line, split)) < wanted.of(len(keys.high)):
                return False
    return True


class Groups:
    """Holds out whole groups of pairs: pairs that share a sentence, in any relation, are in the same group."""

    def __init__(self, connection: Any, relations: Mapping[str, Keys], least: Mapping[str, AtLeast]) -> None:
        names = list(relations)
        sentences = np.concatenate([keys.sentences for keys in relations.values()])
        high = np.concatenate([keys.high for keys in relations.values()])
        relation = np.repeat(np.arange(len(names)), [len(keys.high) for keys in relations.values()])
        group = _groups(sentences)
        sizes = np.zeros((group.max(initial=-1) + 1, len(names)), np.int64)  # pairs by group and relation
        np.add.at(sizes, (group, relation), 1)
        first = np.full(len(sizes), _END - 1, np.uint64)
        np.minimum.at(first, group, high)
        order = np.argsort(first, kind="stable").tolist()
        split_of = np.zeros(len(sizes), np.int64)  # an index into SPLITS
        for split, wanted in least.items():
            left = np.array([wanted.of(len(keys.high)) for keys in relations.values()], np.int64)
            free = [number for number in order if not split_of[number]]
            split_of[list(_chosen(free, sizes, left))] = SPLITS.index(split)
        for number, name in enumerate(names):
            rows = (relation == number) & (split_of[group] > 0)
            splits = [SPLITS[index] for index in split_of[group[rows]].tolist()]
            table = pa.table({"key": high[rows], "split": pa.array(splits, pa.string())})
            connection.register(f"held_out_{name}", table)

    def condition(self, relation: str, split: str) -> str:
        """An SQL condition over `key_high`: which rows of a relation belong to a split."""
        if split == "train":
            return f"key_high NOT IN (SELECT key FROM held_out_{relation})"
        return f"key_high IN (SELECT key FROM held_out_{relation} WHERE split = '{split}')"


def _chosen(groups: list[int], sizes: _Counts, left: _Counts) -> Iterator[int]:
    """The first groups that fit; if none fits, the smallest group, provided that most pairs are left for train."""
    wanted = left.any()
    empty = True
    for number in groups:
        if (sizes[number] <= left).all():
            left = left - sizes[number]
            empty = False
            yield number
    if wanted and empty and groups:
        smallest = min(groups, key=lambda number: int(sizes[number].sum()))
        if (4 * sizes[smallest] <= sizes.sum(axis=0)).all():
            yield smallest


def _groups(sentences: _Numbers) -> npt.NDArray[np.intp]:
    """The number of each pair's group, from the hashes of the sentences: (pairs, source and target)."""
    known, ids = np.unique(sentences, return_inverse=True)
    parents = list(range(len(known)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]
        return number

    pairs = ids.reshape(-1, 2).tolist()
    for source, target in pairs:
        parents[root(source)] = root(target)
    roots = np.array([root(source) for source, _ in pairs], np.intp)
    numbers: npt.NDArray[np.intp] = np.unique(roots, return_inverse=True)[1].reshape(-1)
    return numbers
