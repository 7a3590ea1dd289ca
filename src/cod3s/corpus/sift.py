"""The first step: keep the rows of a file that pass the filters of a relation, with their keys.

Each file is sifted by itself, so this step runs in parallel; duplicates and splits need all files and come later.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cod3s.corpus.filters import find_filters, removed_by
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.corpus.read import PAIR_SCHEMA, Reader
from cod3s.corpus.relations import Relation, columns_of, find_relations
from cod3s.corpus.sql import BATCH_ROWS, connect
from cod3s.io.locations import Location

OTHER_ORDER = "order"
BLANK = "blank"
SIFT_REASONS = {
    OTHER_ORDER: "worded the other way round (X because Y, or X, so Y): teaches the inverse relation",
    BLANK: "a side is empty: nothing to sign",
}
"""What removes pairs with any filters."""


@dataclass(frozen=True)
class Sifted:
    """What became of a file's rows; `removed` counts them by the filter that removed them."""

    read: int
    bad: int
    examples: list[str]
    removed: dict[str, int]
    kept: int


class Sifter:
    """Sifts files for some relations; the settings are the same for all of them."""

    def __init__(self, config: PrepareConfig) -> None:
        self._config = config
        self._filters = removed_by(find_filters(config.filter))
        self._names = columns_of(find_relations(config.relation, config.template))
        self._connection = connect()

    def __call__(self, file: Location, relation: Relation, part: Location) -> None:
        """Write the kept rows to `part`.parquet, then the counts to `part`.json."""
        reader, removed = Reader(file, self._names, self._config.bad_rows == "skip"), Counter[str]()
        with part.with_suffix(".parquet").replaced() as stream, self._annotated(reader, relation) as rows:
            schema = rows.schema.remove(rows.schema.get_field_index("removed"))
            with pq.ParquetWriter(stream, schema, compression="zstd") as writer:
                for batch in rows:
                    stays = pc.is_null(batch["removed"])
                    removed.update(batch.filter(pc.invert(stays))["removed"].to_pylist())
                    writer.write_batch(batch.filter(stays).select(schema.names))
        kept = reader.read - removed.total()
        sifted = Sifted(reader.read, reader.bad, reader.bad_examples, dict(removed), kept)
        part.with_suffix(".json").write_json(asdict(sifted))

    @contextmanager
    def _annotated(self, reader: Reader, relation: Relation) -> Iterator[pa.RecordBatchReader]:
        """All rows with their keys and, in `removed`, the first filter that removes them."""
        failed: list[Exception] = []
        pairs = pa.RecordBatchReader.from_batches(PAIR_SCHEMA, _noting(reader.batches(), failed))
        self._connection.register("pairs", pairs)
        try:
            with self._connection.sql(self._query(relation)).to_arrow_reader(BATCH_ROWS) as rows:
                yield rows
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            # DuckDB wraps what the reader raised; the reader's error says which line it was.
            raise failed[0] if failed else error from None
        finally:
            self._connection.unregister("pairs")

    def _query(self, relation: Relation) -> str:
        source, target = ("second", "first") if relation.reverse else ("first", "second")
        first, second = ("target", "source") if relation.reverse else ("source", "target")
        other = "FALSE"
        if self._config.orders == "matching" and relation.order:
            other = f"\"order\" NOT IN ('', '{relation.order}')"
        return f"""
            SELECT source, target, "order", pattern, corpus, removed,
              md5_number_upper({first}_bare || chr(31) || {second}_bare) AS key_high,
              md5_number_lower({first}_bare || chr(31) || {second}_bare) AS key_low,
              md5_number_upper(source_bare) AS source_hash, md5_number_upper(target_bare) AS target_hash
            FROM (
              SELECT *, CASE WHEN {other} THEN '{OTHER_ORDER}' WHEN source = '' OR target = '' THEN '{BLANK}'
                ELSE {self._filters} END AS removed
              FROM (
                SELECT *, bare(source) AS source_bare, bare(target) AS target_bare
                FROM (
                  SELECT clean({source}) AS source, clean({target}) AS target, "order", pattern, corpus
                  FROM pairs
                )
              )
            )"""


def _noting(batches: Iterator[pa.RecordBatch], failed: list[Exception]) -> Iterator[pa.RecordBatch]:
    try:
        yield from batches
    except Exception as error:
        failed.append(error)
        raise
