"""The second step: split the unique pairs of all files into unsigned shards of train, dev and test.

Each relation and split is sorted by key, out of core, which puts duplicates next to each other. No source of dev
or test occurs in train, as a source or as a target, in any relation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cod3s.corpus.holdout import MAX_PAIRS, hold_out
from cod3s.corpus.pairs import SPLITS
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.corpus.sql import BATCH_ROWS
from cod3s.errors import Progress
from cod3s.io.disk import replaced_file
from cod3s.io.scan import parquet_files

EXACT, NEAR, LIMIT, LEAKED, RESERVE = "exact duplicate", "near duplicate", "limit", "leaked", "reserve"
SPLIT_REASONS = {
    EXACT: "the same text as another pair",
    NEAR: "the same letters and digits as another pair",
    LIMIT: "beyond --limit",
    LEAKED: "in train, but one of its sentences is a source of dev or test (or in test, and a source of dev)",
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
    """The counts of a relation's rows: those removed, by reason, and those in each split."""

    removed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SPLIT_REASONS, 0))
    rows: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """How the pairs were split: the shards, and the counts of every relation."""

    shards: list[Shard]
    counts: dict[str, SplitCounts]
    has_own_splits: bool  # whether rows named their splits
    few_sources: bool  # so few that none is held out


class Splitter:
    """Splits the sifted rows of all relations together: no relation trains on what another holds out.

    `parts` are the files with the rows of each relation.
    """

    def __init__(
        self,
        work: Path,
        config: PrepareConfig,
        parts: dict[str, list[Path]],
        connection: Any,
        progress: Progress,
    ) -> None:
        self._work, self._config, self._connection, self._progress = work, config, connection, progress
        self._counts = {relation: SplitCounts() for relation in parts}
        for relation, files in parts.items():
            self._assign_units(relation, parquet_files(files))
        self._held_out = hold_out(connection, [f"pairs_{relation}" for relation in parts], config)
        rows = " UNION ALL ".join(
            f"SELECT source_hash, {self._held_out.split_of()} AS held FROM pairs_{relation}" for relation in parts
        )
        connection.execute(
            "CREATE TEMP TABLE held_out AS"
            f" SELECT source_hash, min(held) AS split FROM ({rows}) WHERE held <> 'train' GROUP BY source_hash"
        )

    def __call__(self) -> Plan:
        """Write the shards of every relation."""
        most = self._most()
        shards = []
        for relation, count in self._counts.items():
            for split in SPLITS:
                reason = LIMIT if split == "train" else RESERVE
                written = self._write(
                    _limited(self._rows(relation, split), most[split], count, reason), relation, split
                )
                count.rows[split] = sum(shard.rows for shard in written)
                shards += written
        held_out = self._held_out
        return Plan(shards, self._counts, held_out.has_own_splits, held_out.few_sources)

    def _most(self) -> dict[str, int | None]:
        """The maximum number of pairs in each split; a split of the input's own is limited only by request."""
        held_out = None if self._held_out.has_own_splits else MAX_PAIRS
        return {
            "train": self._config.limit,
            "dev": held_out if self._config.dev is None else self._config.dev,
            "test": held_out if self._config.test is None else self._config.test,
        }

    def _assign_units(self, relation: str, rows: str) -> None:
        """Name the rows of a relation `pairs_RELATION`, with one unit per source even if the input has several."""
        several = f"SELECT source_hash, min(unit) AS unit FROM {rows} GROUP BY 1 HAVING min(unit) <> max(unit)"
        self._connection.execute(f"CREATE TEMP TABLE units_{relation} AS {several}")
        self._connection.execute(
            f"CREATE TEMP VIEW pairs_{relation} AS"
            " SELECT pair.* REPLACE (coalesce(other.unit, pair.unit) AS unit)"
            f" FROM {rows} AS pair LEFT JOIN units_{relation} AS other USING (source_hash)"
        )

    def _rows(self, relation: str, split: str) -> Iterator[pa.RecordBatch]:
        """The unique rows of a split, without leaks, in the order of their keys; dev and test source by source."""
        count = self._counts[relation]
        rows = f"FROM pairs_{relation} WHERE {self._held_out.split_of()} = '{split}'"
        leaked = {
            "train": "(source_hash IN (FROM sources) OR target_hash IN (FROM sources))",
            "dev": "FALSE",
            "test": "source_hash IN (SELECT source_hash FROM held_out WHERE split = 'dev')",
        }[split]
        sources = "WITH sources AS (SELECT source_hash FROM held_out)"
        [(leaks,)] = self._connection.execute(f"{sources} SELECT count(*) {rows} AND {leaked}").fetchall()
        count.removed[LEAKED] += leaks
        # Sorted by all columns, so that which of several near-duplicates stays depends on nothing else.
        columns = 'key_high, key_low, source, target, "order", pattern, corpus'
        order = columns if split == "train" else f"unit, {columns}"
        query = f"{sources} SELECT {columns} {rows} AND NOT {leaked} ORDER BY {order}"
        batches = self._connection.sql(query).to_arrow_reader(BATCH_ROWS)
        for batch in _without_duplicates(batches, count):
            self._progress(len(batch))
            yield batch

    def _write(self, batches: Iterator[pa.RecordBatch], relation: str, split: str) -> list[Shard]:
        """Write the batches as shards of `shard_rows` rows each, the last with the rest."""
        shards = []
        for number, table in enumerate(_regrouped(batches, self._config.shard_rows)):
            shard = Shard(relation, split, number, len(table))
            with replaced_file(self._work / f"{shard.name}.parquet") as partial:
                pq.write_table(table.select(SHARD_COLUMNS), partial, compression="zstd")
            shards.append(shard)
        return shards


def count_shared(connection: Any, folder: Path, shards: Sequence[Shard]) -> int:
    """How many sources of dev and test are in train, on either side; counted on the text of the shards on disk."""
    train = [folder / f"{shard.name}.parquet" for shard in shards if shard.split == "train"]
    held_out = [folder / f"{shard.name}.parquet" for shard in shards if shard.split != "train"]
    if not train or not held_out:
        return 0
    kept = f"SELECT bare(source) FROM {parquet_files(held_out)}"
    seen = " UNION ALL ".join(
        f"SELECT bare({side}) AS side FROM {parquet_files(train)}" for side in ("source", "target")
    )
    query = f"SELECT count(DISTINCT side) FROM ({seen}) WHERE side IN ({kept})"
    return int(connection.execute(query).fetchall()[0][0])


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


def _limited(
    batches: Iterator[pa.RecordBatch], limit: int | None, count: SplitCounts, reason: str
) -> Iterator[pa.RecordBatch]:
    """The first `limit` rows by key, which are a random sample; the others are counted as removed."""
    for batch in batches:
        rows = batch.slice(0, limit)
        count.removed[reason] += len(batch) - len(rows)
        limit = None if limit is None else limit - len(rows)
        if len(rows):
            yield rows


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
