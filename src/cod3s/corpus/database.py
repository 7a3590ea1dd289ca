"""DuckDB as corpora use it: within a memory limit, spilling to disk, knowing the macros of keys."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow.dataset as ds

from cod3s.corpus.keys import MACROS
from cod3s.files.locations import Place

BATCH_ROWS = 65_536  # read and written at a time


def connect(spill: Path | None = None, memory: str = "2GB") -> Any:
    """A connection that keeps to `memory`, with what does not fit in the folder `spill`."""
    settings: dict[str, Any] = {"memory_limit": memory, "preserve_insertion_order": False}
    if spill is not None:
        settings["temp_directory"] = str(spill)
    connection = duckdb.connect(config=settings)
    for macro in MACROS.split(";\n"):
        if macro.strip():
            connection.execute(macro).fetchall()
    return connection


def table_of(connection: Any, name: str, files: list[Place]) -> str:
    """What to write after FROM to read these Parquet files.

    DuckDB reads local files itself; others come through pyarrow, under `name`.
    """
    if all(file.local for file in files):
        paths = ", ".join("'" + file.path.replace("'", "''") + "'" for file in files)
        return f"read_parquet([{paths}])"
    dataset = ds.dataset([file.path for file in files], filesystem=files[0].system, format="parquet")
    connection.register(name, dataset)
    return name
