"""Open DuckDB with a memory limit and the SQL macros that compare sentences."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds

from cod3s.io.locations import Location

# `clean` does what cod3s.text.clean does; most text is already clean, which a cheap test detects.
# `plain_words` does what cod3s.unsuitable.plain_words does.
# `bare` is what near-duplicates share: lower-case letters and digits; text without any is only like itself.
_MACROS = r"""
CREATE OR REPLACE MACRO clean(t) AS
  CASE WHEN regexp_full_match(t, '[!-~]+( [!-~]+)*') THEN t
  WHEN regexp_full_match(t, '[\p{Z}\p{Cc}\p{Cf}\p{Mn}\p{Me}]*') THEN ''
  ELSE trim(regexp_replace(nfc_normalize(t), '[\p{Z}\p{Cc}]+', ' ', 'g')) END;
CREATE OR REPLACE MACRO bare(t) AS
  CASE WHEN regexp_matches(t, '[\p{L}\p{M}\p{N}]')
  THEN regexp_replace(lower(t), '[^\p{L}\p{M}\p{N}]+', '', 'g') ELSE t END;
CREATE OR REPLACE MACRO plain_words(t) AS
  ' . ' || trim(regexp_replace(regexp_replace(lower(t), '[''’]', '', 'g'), '[^\p{L}\p{N}]+', ' ', 'g')) || ' . ';
CREATE OR REPLACE MACRO text_hash(t) AS md5_number_upper(bare(t));
"""

BATCH_ROWS = 65_536  # read and written at a time


def connect(spill: Path | None = None, memory: str = "2GB") -> Any:
    """A connection that uses at most `memory` and spills the rest to the folder `spill`."""
    settings: dict[str, Any] = {"memory_limit": memory, "preserve_insertion_order": False}
    if spill is not None:
        settings["temp_directory"] = str(spill)
    connection = duckdb.connect(config=settings)
    connection.execute(_MACROS)
    return connection


def table_of(connection: Any, name: str, files: list[Location]) -> str:
    """What to write after FROM to read these Parquet files.

    DuckDB reads local files itself; others come through pyarrow, under `name`.
    """
    if all(file.local for file in files):
        paths = ", ".join("'" + file.path.replace("'", "''") + "'" for file in files)
        return f"read_parquet([{paths}])"
    dataset = ds.dataset([file.path for file in files], filesystem=files[0].system, format="parquet")
    connection.register(name, dataset)
    return name
