"""The second step: split the unique pairs of all files into unsigned shards of train, dev and test.

Each relation and split is sorted by key, out of core, which puts duplicates next to each other. Train comes first:
it shows which held-out sentences also occur in train.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cod3s.corpus.holdout import MAX_GROUPED_ROWS, SPLITS, Groups, Line, fills, read_keys, wanted_pairs
from cod3s.corpus.leakage import Hashes, Leaks
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.corpus.sql import BATCH_ROWS, table_of
from cod3s.errors import Progress
from cod3s.io.locations import Location

EXACT, NEAR, LIMIT, LEAKED, RESERVE = "exact duplicate", "near duplicate", "limit", "leaked", "reserve"
SPLIT_REASONS = {
    EXACT: "the same text as another pair",
    NEAR: "the same letters and digits as another pair",
    LIMIT: "beyond --limit",
    LEAKED: "held out, but one of its sentences occurs in train",
    RESERVE: "held out, but dev and test are full",
}

SHARD_COLUMNS = ("source", "target", "order", "pattern", "corpus")


@dataclass(frozen=True)
class Shard:
    """One shard: `RELATION/SPLIT-NUMBER.parquet`."""

    relation: str
    split: str
    number: int
    rows: int

    @property
    def name(self) -> str:
        return f"{self.relation}/{self.split}-{self.number:05d}"


@dataclass
class SplitCounts:
    """What became of a relation's rows: how many were removed, by reason, and how many are in each split."""

    removed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SPLIT_REASONS, 0))
    rows: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """How the pairs were split: the shards, the counts of every relation, and the leaks that are left (none)."""

    shards: list[Shard]
    counts: dict[str, SplitCounts]
    shared: int


class Splitter:
    """Splits the sifted rows of all relations together: no relation trains on what another holds out.

    `parts` are the files with the rows of each relation.
    """

    def __init__(
        self,
        work: Location,
        config: PrepareConfig,
        parts: dict[str, list[Location]],
        connection: Any,
        progress: Progress,
    ) -> None:
        self._work, self._config, self._connection, self._progress = work, config, connection, progress
        self._tables = {
            relation: table_of(connection, f"parts_{relation}", files) for relation, files in parts.items()
        }
        self._counts = {relation: SplitCounts() for relation in parts}
        self._held_out = self._choose_held_out()

    def __call__(self) -> tuple[list[Shard], dict[str, SplitCounts]]:
        """Write the shards of every relation; return them and the counts."""
        leaks = Leaks([self._hashes(relation, split) for relation in self._tables for split in ("dev", "test")])
        shards = []
        for relation, count in self._counts.items():
            train = _limited(self._rows(relation, "train"), self._config.limit, count, LIMIT)
            shards += self._write(leaks.watched(train), relation, "train")
        for relation, count in self._counts.items():
            for split, limit in (("dev", self._config.dev), ("test", self._config.test)):
                clean = _without_leaks(self._rows(relation, split), leaks, count)
                shards += self._write(_limited(clean, limit, count, RESERVE), relation, split)
            count.rows = {
                split: sum(shard.rows for shard in shards if (shard.relation, shard.split) == (relation, split))
                for split in SPLITS
            }
        return shards, self._counts

    def _choose_held_out(self) -> Line | Groups:
        """The line, unless the corpus is small and the line holds out fewer pairs than are wanted."""
        line = Line(self._config.held_out if self._config.dev or self._config.test else 0)
        least = wanted_pairs(self._config)
        counted = "+".join(f"(SELECT count(*) FROM {table})" for table in self._tables.values())
        if not least or self._connection.sql(f"SELECT {counted}").fetchall()[0][0] > MAX_GROUPED_ROWS:
            return line
        keys = {relation: read_keys(self._connection, table) for relation, table in self._tables.items()}
        return line if fills(line, keys, least) else Groups(self._connection, keys, least)

    def _hashes(self, relation: str, split: str) -> Hashes:
        """The hashes of the sentences in a split, before duplicates are removed."""
        rows = f"FROM {self._tables[relation]} WHERE {self._held_out.condition(relation, split)}"
        query = f"SELECT source_hash AS hash {rows} UNION SELECT target_hash {rows}"
        hashes: Hashes = self._connection.sql(query).fetchnumpy()["hash"].astype(np.uint64)
        return hashes

    def _rows(self, relation: str, split: str) -> Iterator[pa.RecordBatch]:
        """The unique rows of a split, in the order of their keys."""
        # Sorted by all columns, so that which of several near-duplicates stays depends on nothing else.
        query = f"""
            SELECT source, target, "order", pattern, corpus, key_high, key_low, source_hash, target_hash
            FROM {self._tables[relation]}
            WHERE {self._held_out.condition(relation, split)}
            ORDER BY key_high, key_low, source, target, "order", pattern, corpus"""
        batches = self._connection.sql(query).to_arrow_reader(BATCH_ROWS)
        for batch in _without_duplicates(batches, self._counts[relation]):
            self._progress(len(batch))
            yield batch

    def _write(self, batches: Iterator[pa.RecordBatch], relation: str, split: str) -> list[Shard]:
        """Write the batches as shards of `shard_rows` rows each, the last with the rest."""
        shards = []
        for number, table in enumerate(_regrouped(batches, self._config.shard_rows)):
            shard = Shard(relation, split, number, len(table))
            with (self._work / f"{shard.name}.parquet").replaced() as stream:
                pq.write_table(table.select(SHARD_COLUMNS), stream, compression="zstd")
            shards.append(shard)
        return shards


def _without_duplicates(batches: Iterator[pa.RecordBatch], count: SplitCounts) -> Iterator[pa.RecordBatch]:
    """The sorted rows without those that have the same key as the row before."""
    last: pa.RecordBatch | None = None
    for batch in batches:
        if not len(batch):
            continue
        joined = batch if last is None else pa.concat_batches([last, batch])
        same_key = _equals_previous(joined, ("key_high", "key_low"))
        same_text = same_key & _equals_previous(joined, ("source", "target"))
        count.removed[EXACT] += int(same_text.sum())
        count.removed[NEAR] += int((same_key & ~same_text).sum())
        new = np.ones(len(joined), bool)
        new[1:] = ~same_key
        new[0] = last is None  # else it was in the batch before
        last = joined.slice(len(joined) - 1)
        yield joined.filter(pa.array(new))


def _equals_previous(batch: pa.RecordBatch, columns: Sequence[str]) -> npt.NDArray[np.bool_]:
    """For all rows but the first: whether these columns are equal to those of the row before."""
    rows = len(batch) - 1
    equal = np.ones(rows, bool)
    for name in columns:
        same = pc.equal(batch[name].slice(1), batch[name].slice(0, rows))
        equal &= same.to_numpy(zero_copy_only=False)
    return equal


def _without_leaks(
    batches: Iterator[pa.RecordBatch], leaks: Leaks, count: SplitCounts
) -> Iterator[pa.RecordBatch]:
    """The held-out rows that share no sentence with train."""
    for batch in batches:
        leaked = leaks.in_train(batch)
        count.removed[LEAKED] += int(leaked.sum())
        yield batch.filter(pa.array(~leaked))


def _limited(
    batches: Iterator[pa.RecordBatch], limit: int | None, count: SplitCounts, reason: str
) -> Iterator[pa.RecordBatch]:
    """The first `limit` rows by key, which are a random sample; the others are counted as removed."""
    for batch in batches:
        taken = batch.slice(0, limit)
        count.removed[reason] += len(batch) - len(taken)
        limit = None if limit is None else limit - len(taken)
        if len(taken):
            yield taken


def _regrouped(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of exactly `rows` rows; the last has the rest."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += len(batch)
        while size >= rows:
            table = pa.Table.from_batches(held)
            yield table.slice(0, rows)
            held = table.slice(rows).to_batches()
            size -= rows
    if size:
        yield pa.Table.from_batches(held)
