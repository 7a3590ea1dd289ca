"""Write rows of text as Parquet, TSV, CSV or JSON lines, as the file's name says."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from cod3s.errors import UsageError, require
from cod3s.io.disk import replaced_file

WRITTEN = (".parquet", ".tsv", ".csv", ".jsonl")
_COMPRESSED = (".gz", ".zst")
Row = Sequence[str]
Write = Callable[[Sequence[Row]], None]

_ROWS_PER_GROUP = 1 << 16


def check_output_format(path: Path) -> str:
    """The format that the name of an output file asks for; a name that asks for none is an error."""
    is_compressed = path.suffix in _COMPRESSED
    kind = path.with_suffix("").suffix if is_compressed else path.suffix
    if kind not in WRITTEN or (kind == ".parquet" and is_compressed):
        ending = f"the ending {path.suffix!r}" if path.suffix else "no ending"
        raise UsageError(
            f"{path.name} has {ending}, so its format is not known",
            hint="name it .parquet, .tsv, .csv or .jsonl; the last three also with .gz or .zst",
        )
    return kind


@contextmanager
def replaced_table(path: Path, columns: Sequence[str]) -> Iterator[Write]:
    """A function that takes rows; the finished table replaces `path` when the block ends without an error."""
    kind = check_output_format(path)
    with replaced_file(path) as unfinished:
        writing = (
            _parquet(unfinished, columns) if kind == ".parquet" else _text(unfinished, kind, columns, path.suffix)
        )
        with writing as write:
            yield write


@contextmanager
def _parquet(path: Path, columns: Sequence[str]) -> Iterator[Write]:
    """Rows reach the file in groups, so that few are held in memory."""
    arrow, parquet = require("pyarrow", "corpus"), require("pyarrow.parquet", "corpus")
    schema = arrow.schema([(name, arrow.string()) for name in columns])
    held: list[Row] = []

    def write(rows: Sequence[Row], least: int = _ROWS_PER_GROUP) -> None:
        held.extend(rows)
        if len(held) >= least:
            file.write_table(arrow.table([list(column) for column in zip(*held, strict=True)], schema=schema))
            held.clear()

    with parquet.ParquetWriter(path, schema, compression="zstd") as file:
        yield write
        write([], least=1)


@contextmanager
def _text(path: Path, kind: str, columns: Sequence[str], suffix: str) -> Iterator[Write]:
    with (
        path.open("wb") as raw,
        io.TextIOWrapper(_compressed(raw, suffix), encoding="utf-8", newline="") as stream,
    ):
        lines: dict[str, Callable[[Row], str]] = {
            ".tsv": _tsv_line,
            ".csv": _csv_line,
            ".jsonl": partial(_json_line, columns),
        }
        if kind != ".jsonl":
            stream.write(lines[kind](columns))
        yield lambda rows: stream.writelines(map(lines[kind], rows))


def _compressed(raw: BinaryIO, suffix: str) -> Any:
    """A stream that packs what is written to it, if the file's name ends in .gz or .zst; else `raw` itself."""
    if suffix == ".gz":
        return gzip.GzipFile("", "wb", fileobj=raw, mtime=0)  # without a name and a time: equal rows, equal bytes
    return require("zstandard", "corpus").ZstdCompressor().stream_writer(raw) if suffix == ".zst" else raw


def _tsv_line(cells: Row) -> str:
    """Cells between tabs, unquoted: white space inside a cell becomes a single space."""
    return "\t".join(" ".join(cell.split()) for cell in cells) + "\n"


def _csv_line(cells: Row) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(" ".join(cell.split()) for cell in cells)
    return line.getvalue()


def _json_line(columns: Sequence[str], cells: Row) -> str:
    return json.dumps(dict(zip(columns, cells, strict=True)), ensure_ascii=False) + "\n"
