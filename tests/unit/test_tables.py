"""The small reader of tables, which commands of the base install share."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cod3s.errors import FileFormatError
from cod3s.io.tables import open_table, read_column, read_sentences
from conftest import Run

RECORDS = [{"id": 1, "text": "it rained"}, {"id": 2, "text": "we slept, late"}]
JSONL = "".join(json.dumps(record) + "\n" for record in RECORDS)


def write_tables(folder: Path) -> list[Path]:
    """The same records in every format."""
    (folder / "a.jsonl").write_text(JSONL)
    (folder / "a.tsv").write_bytes(b"\xef\xbb\xbfid\ttext\r\n1\tit rained\r\n2\twe slept, late\r\n")
    (folder / "a.csv.gz").write_bytes(gzip.compress(b'id,text\n1,it rained\n2,"we slept, late"\n'))
    pq.write_table(pa.Table.from_pylist(RECORDS), folder / "a.parquet")
    return [folder / name for name in ("a.jsonl", "a.tsv", "a.csv.gz", "a.parquet")]


def test_every_format_gives_the_same_column(tmp_path: Path) -> None:
    for path in write_tables(tmp_path):
        assert list(read_sentences(path, "text")) == ["it rained", "we slept, late"], path.name
        with pytest.raises(FileFormatError, match=r"no (column|text in a field) 'txt'"):
            list(read_column(path, "txt"))
        with pytest.raises(FileFormatError, match="is a table") as raised:
            list(read_sentences(path))
        assert "--column" in raised.value.hint


def test_a_parquet_file_is_read_as_json_records(tmp_path: Path) -> None:
    path = write_tables(tmp_path)[-1]
    with open_table(path) as table:
        assert (table.kind, table.header) == ("jsonl", [])
        assert [(row.line, row.record) for row in table] == [(1, RECORDS[0]), (2, RECORDS[1])]


def test_select_reads_parquet_and_prints_its_records(here: Run, tmp_path: Path) -> None:
    write_tables(tmp_path)
    done = here("select", "a.parquet", "-k", "2", "--encoder", "static")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == JSONL.splitlines()


def test_damaged_tables_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(FileFormatError, match="not a readable Parquet file"):
        list(read_column(tmp_path / "a.parquet", "text"))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"text\n" + b"x" * 99_999)[:-9])
    with pytest.raises(FileFormatError, match="damaged gzip"):
        list(read_column(tmp_path / "a.csv.gz", "text"))
    (tmp_path / "a.tsv").write_text("id\ttext\n1\n")
    with pytest.raises(FileFormatError, match="line 2: 1 cells, but the header has 2"):
        list(read_column(tmp_path / "a.tsv", "text"))
