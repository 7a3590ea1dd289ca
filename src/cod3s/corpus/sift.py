"""The first step: keep the rows of a file that pass the filters of a relation, with their keys.

Each file is sifted by itself, so this step runs in parallel; duplicates and splits need all files and come later.
"""

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cod3s.corpus.filters import find_filters, removed_by
from cod3s.corpus.pairs import PairFile, open_pairs
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.corpus.relations import Relation
from cod3s.corpus.sql import BATCH_ROWS, connect
from cod3s.errors import FileFormatError
from cod3s.io.disk import display_name, replaced_file, write_json

BAD = "bad row"
OTHER_ORDER = "order"
SIFT_REASONS = {
    BAD: "not a pair: see bad_rows in the manifest",
    "relation": "it teaches another relation",
    OTHER_ORDER: "worded the other way round (X because Y, or X, so Y): teaches the inverse relation",
    "blank": "a side is empty: nothing to sign",
}
"""The reasons to remove pairs that hold with any filters."""


@dataclass(frozen=True)
class Sifted:
    """The counts of a file's rows; `removed` counts them by the filter that removed them."""

    rows: int
    kept: int
    removed: dict[str, int]
    bad_rows: list[str]  # the first few that are not pairs, with their reasons


class Sifter:
    """Sifts files for some relations; the settings are the same for all of them."""

    def __init__(self, config: PrepareConfig) -> None:
        self._config = config
        self._filters = removed_by(find_filters(config.filter))
        self._connection = connect()

    def __call__(self, file: Path, relation: Relation, part: Path) -> None:
        """Write the kept rows to `part`.parquet, then the counts to `part`.json."""
        alone, all_orders = self._config.relation != "both", self._config.orders == "all"
        pairs = open_pairs(file, relation, alone=alone, all_orders=all_orders)
        removed, kept = Counter[str](), 0
        try:
            with (
                replaced_file(part.with_suffix(".parquet")) as partial,
                self._connection.sql(self._query(pairs)).to_arrow_reader(BATCH_ROWS) as rows,
            ):
                schema = rows.schema.remove(rows.schema.get_field_index("removed"))
                with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
                    for batch in rows:
                        stays = pc.is_null(batch["removed"])
                        removed.update(batch.filter(pc.invert(stays))["removed"].to_pylist())
                        passed = batch.filter(stays).select(schema.names)
                        writer.write_batch(passed)
                        kept += len(passed)
            examples = self._not_pairs(pairs) if removed[BAD] else []
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # the disk failed, not the reading
                raise
            raise pairs.scan.explain(error) from error
        rejects = pairs.scan.take_rejects(self._connection)
        removed[BAD] += rejects.lines
        bad_rows = [*rejects.examples, *examples][:3]
        if bad_rows and self._config.bad_rows == "stop":
            raise FileFormatError(
                f"{display_name(file)}, {bad_rows[0]}"
                + (f" ({removed[BAD]:,} rows are not pairs)" if removed[BAD] > 1 else ""),
                hint="correct the row, or skip and count such rows with --bad-rows skip",
            )
        bad_rows = [f"{file.name}, {row}" for row in bad_rows]
        write_json(
            part.with_suffix(".json"), asdict(Sifted(kept + removed.total(), kept, dict(+removed), bad_rows))
        )

    def _not_pairs(self, pairs: PairFile) -> list[str]:
        """The first few rows with a problem; a second look at the file, in its order."""
        pairs.scan.take_rejects(self._connection)
        query = f"SELECT row, problem FROM (SELECT row_number() OVER () AS row, problem FROM ({pairs.query}))"
        self._connection.execute("SET preserve_insertion_order = true")
        first = self._connection.sql(f"{query} WHERE problem IS NOT NULL ORDER BY row LIMIT 3").fetchall()
        self._connection.execute("SET preserve_insertion_order = false")
        return [f"row {row:,}: {problem}" for row, problem in first]

    def _query(self, pairs: PairFile) -> str:
        """All rows with their keys and, in `removed`, the first filter that removes them.

        Rows with the same `unit` (a hash) are in the same split, rows with the same `key` are duplicates.
        """
        unit = f'CASE "group" WHEN \'\' THEN {pairs.unit}_bare ELSE "group" END'
        return f"""
            SELECT source, target, "order", pattern, corpus, split, removed,
              md5_number_upper({unit}) AS unit,
              md5_number_upper(source_bare || chr(31) || target_bare) AS key_high,
              md5_number_lower(source_bare || chr(31) || target_bare) AS key_low,
              md5_number_upper(source_bare) AS source_hash, md5_number_upper(target_bare) AS target_hash
            FROM (
              SELECT *, CASE WHEN problem IS NOT NULL THEN '{BAD}' WHEN other IS NOT NULL THEN other
                WHEN source = '' OR target = '' THEN 'blank' ELSE {self._filters} END AS removed
              FROM (
                SELECT *, bare(source) AS source_bare, bare(target) AS target_bare
                FROM (SELECT * REPLACE (clean(source) AS source, clean(target) AS target) FROM ({pairs.query}))
              )
            )"""
