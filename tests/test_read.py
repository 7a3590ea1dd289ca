"""Pairs are read whole or the error names the line; no row is lost silently."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cod3s.corpus.read import Reader, find_files
from cod3s.corpus.relations import CAUSE, EFFECT, columns_of, find_relations
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.lines import MAX_LINE_BYTES
from cod3s.io.locations import locate

BOTH = columns_of([EFFECT, CAUSE])
PAIR = {"first": "it rained", "second": "we stayed in", "order": "so", "pattern": "comma-so", "corpus": "mine"}
CAUSAL = {"cause": "it rained", "effect": "we stayed in", "order": "so", "pattern": "comma-so", "corpus": "mine"}
TSV = "\t".join(CAUSAL) + "\n" + "\t".join(CAUSAL.values()) + "\n"

QUOTED = "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in (CAUSAL, CAUSAL.values()))


def read(path: Path, names=BOTH) -> list[dict[str, str]]:
    return rows_of(Reader(locate(path), names))


def rows_of(reader: Reader) -> list[dict[str, str]]:
    return [row for batch in reader.batches() for row in batch.to_pylist()]


def skipping(path: Path) -> Reader:
    return Reader(locate(path), BOTH, skip_bad=True)


def written(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_quoted_cell_may_be_as_long_as_in_any_other_table(tmp_path: Path) -> None:
    long = "it rained and rained " * 10_000  # longer than the csv module reads by itself
    rows = read(written(tmp_path / "pairs.csv", f'cause,effect\n"{long}","we stayed, in"\n'))
    assert [(len(row["first"]), row["second"]) for row in rows] == [(len(long), "we stayed, in")]


SAME_PAIR = [
    ("pairs.tsv", TSV.encode(), "a TSV file with a header"),
    ("pairs.txt", TSV.encode(), "the name does not matter, the content does"),
    ("pairs.tsv", b"\xef\xbb\xbf" + TSV.replace("\n", "\r\n").encode(), "a byte-order mark and Windows line ends"),
    ("pairs.tsv", TSV.rstrip("\n").encode(), "no line end at the end"),
    ("pairs.tsv", TSV.replace("\n", "\n\n").encode(), "empty lines hold no pair"),
    ("pairs.tsv.gz", gzip.compress(TSV.encode()), "gzip"),
    ("pairs.tsv.gz", gzip.compress(TSV[:30].encode()) + gzip.compress(TSV[30:].encode()), "gzip in two members"),
    ("pairs.tsv.zst", zstandard.compress(TSV.encode()), "zstd"),
    ("pairs.csv", TSV.replace("\t", ",").encode(), "a CSV file with a header"),
    ("pairs.csv.gz", gzip.compress(QUOTED.encode()), "CSV with quotes"),
    ("pairs.tsv", TSV.replace("corpus", "source").encode(), "the corpus in `source`, as older versions wrote it"),
    ("pairs.jsonl", json.dumps(CAUSAL).encode(), "one JSON object per line"),
    ("pairs.jsonl", json.dumps({"id": 7, **CAUSAL}).encode() + b"\n", "other fields are ignored"),
]


@pytest.mark.parametrize(("name", "content", "reason"), SAME_PAIR, ids=[row[2] for row in SAME_PAIR])
def test_every_format_gives_the_same_pair(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    assert read(written(tmp_path / name, content)) == [PAIR], reason


def test_parquet_gives_the_same_pair(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([CAUSAL]), tmp_path / "pairs.parquet")
    assert read(tmp_path / "pairs.parquet") == [PAIR]


def test_parquet_of_an_older_harvest_names_the_corpus_as_source(tmp_path: Path) -> None:
    old = {"source" if name == "corpus" else name: value for name, value in CAUSAL.items()}
    pq.write_table(pa.Table.from_pylist([old]), tmp_path / "pairs.parquet")
    assert read(tmp_path / "pairs.parquet") == [PAIR]


def test_a_source_column_of_another_table_is_not_a_corpus(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", "cause\teffect\tsource\nit rained\twe stayed in\thttps://page\n")
    assert read(path)[0]["corpus"] == ""


def test_parquet_with_dictionary_columns_and_without_extras(tmp_path: Path) -> None:
    columns = {name: pa.array([CAUSAL[name]]).dictionary_encode() for name in ("effect", "cause")}
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")
    assert read(tmp_path / "pairs.parquet") == [PAIR | {"order": "", "pattern": "", "corpus": ""}]


def test_causalbank_as_released_says_the_order_by_its_folder(tmp_path: Path) -> None:
    because = written(tmp_path / "because_mode" / "because_of", "because of\twe stayed in\tthe rain\n")
    therefore = written(tmp_path / "therefore_mode" / "therefore", "therefore\tit rained\twe stayed in\n")
    assert find_files([str(tmp_path)]) == [locate(because), locate(therefore)]
    extra = {"pattern": "because of", "corpus": "causalbank"}
    assert read(because) == [{"first": "the rain", "second": "we stayed in", "order": "because", **extra}]
    assert read(therefore)[0] | {"pattern": "", "corpus": ""} == {
        "first": "it rained",
        "second": "we stayed in",
        "order": "so",
        "pattern": "",
        "corpus": "",
    }


def test_a_relation_of_your_own_reads_source_and_target(tmp_path: Path) -> None:
    names = columns_of(find_relations("reply", "{source} {target}"))
    path = written(tmp_path / "dialogue.tsv", "target\tsource\torder\nfine, thanks\thow are you?\tanything\n")
    assert [(row["first"], row["second"], row["order"]) for row in read(path, names)] == [
        ("how are you?", "fine, thanks", "")
    ]


def test_for_one_causal_relation_source_and_target_are_enough(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", "source\ttarget\nwe stayed in\tit rained\n")
    assert read(path, CAUSE.columns)[0]["first"] == "it rained"
    with pytest.raises(FileFormatError, match="'cause' and 'effect' are needed, found 'source', 'target'"):
        read(path)


def test_quotes_and_backslashes_are_ordinary_characters(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", 'cause\teffect\n"it rained\the said \\"no" twice\n')
    assert [(row["first"], row["second"]) for row in read(path)] == [('"it rained', 'he said \\"no" twice')]


def test_unicode_line_separators_do_not_end_a_line(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", "cause\teffect\nit\u2028rained\u0085\twe\x0bstayed\n")
    assert read(path)[0]["first"] == "it\u2028rained\u0085"


BAD_ROWS = [
    (b"it rained\twe stayed\tso\textra", "4 columns where the header has 3", "too many cells"),
    (b"it rained", "1 columns where the header has 3", "too few cells"),
    (b'{"cause": "it rained", "effect": "we stayed"}', "1 columns", "a line of another format"),
    (b"it rained\twe stayed\tthen", "the order is 'then'", "an order that nobody knows"),
    (b"it \xff rained\twe stayed\tso", "not UTF-8", "invalid UTF-8"),
    (b"it \0 rained\twe stayed\tso", "NUL byte", "a NUL byte"),
    (b"a" * 10_000_000 + b"\tb\tso", "longer than 1,048,576 bytes", "a line of 10 MB"),
]


@pytest.mark.parametrize(("line", "message", "reason"), BAD_ROWS, ids=[row[2] for row in BAD_ROWS])
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, line: bytes, message: str, reason: str) -> None:
    good = b"the lamp broke\tit was dark\tso\n"
    path = written(tmp_path / "pairs.tsv", b"cause\teffect\torder\n" + good + line + b"\n" + good)
    with pytest.raises(FileFormatError, match=f"line 3: .*{message}"):
        read(path)
    reader = skipping(path)
    assert len(rows_of(reader)) == 2, reason
    assert (reader.read, reader.bad) == (2, 1)
    assert "line 3" in reader.bad_examples[0]


BAD_JSON = [
    ('{"cause": "it rained"}', "'effect' is missing, or is not text"),
    ('{"cause": "it rained", "effect": null}', "'effect' is missing, or is not text"),
    ('{"cause": "it rained", "effect": 7}', "'effect' is missing, or is not text"),
    ('{"cause": "a", "effect": "b", "cause": "c"}', "it has the same key twice"),
    ('{"cause": "it \\u0000 rained", "effect": "b"}', "'cause' is missing, or is not text"),
    ('{"cause": "it \\ud800 rained", "effect": "b"}', "'cause' is missing, or is not text"),
    ('["it rained", "we stayed"]', "not a JSON object"),
    ("it rained\twe stayed", "not a JSON object"),
    ('{"cause": "it rai', "not a JSON object"),
    ("[" * 100_000, "not a JSON object"),
]


@pytest.mark.parametrize(("line", "message"), BAD_JSON, ids=[row[0][:40] for row in BAD_JSON])
def test_a_bad_json_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = written(tmp_path / "pairs.jsonl", f"{json.dumps(CAUSAL)}\n{line}\n")
    with pytest.raises(FileFormatError, match=f"line 2: .*{message}"):
        read(path)


BAD_FILES = [
    ("a.tsv", b"", "is empty", "an empty file"),
    ("a.tsv", b"\n\n", "is empty", "nothing but empty lines"),
    ("a.txt", b"It rained. We stayed in.\n", "line 1: not a known format", "plain prose"),
    ("a.tsv", b"cause\teffect\tcause\n", "two columns are called 'cause'", "a doubled header"),
    ("a.tsv", b"reason\tresult\n", "'cause' and 'effect' are needed, found 'reason', 'result'", "other columns"),
    ("a.jsonl", b'{"text": "it rained"}\n', "are needed, found 'text'", "other fields"),
    ("a.tsv.gz", gzip.compress(TSV.encode() * 9999)[:-20], "damaged or cut short", "a truncated .gz"),
    ("a.tsv.gz", b"this is not gzip", "damaged or cut short", "a .gz that is none"),
    ("a.tsv.zst", zstandard.compress(TSV.encode() * 9999)[:-20], "damaged or cut short", "a truncated .zst"),
    ("a.parquet", b"PAR1 and then nothing", "damaged", "a truncated Parquet file"),
    ("a.bin", b"\xff\xfe\x00\x01", "is UTF-16 text", "UTF-16"),
    ("a.bin", b"\xff\x00\x01", "line 1: not a known format", "binary"),
    ("a.tsv", b"SQLite format 3\0", "is an SQLite database", "a database"),
    ("a.csv", b'cause,effect\n"it rained,we ran\n', "line 2: a quoted cell", "a cell that does not end"),
    ("a.csv", b"reason,result\n", "columns .* are needed, found 'reason'", "a CSV file with other columns"),
]


@pytest.mark.parametrize(("name", "content", "message", "reason"), BAD_FILES, ids=[row[3] for row in BAD_FILES])
def test_a_bad_file_is_a_clear_error(tmp_path: Path, name: str, content: bytes, message: str, reason: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        read(written(tmp_path / name, content))


def test_nulls_and_wrong_types_in_parquet_are_found(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"cause": ["a b", None, "c\0d"], "effect": ["x", "y", "z"]}), tmp_path / "nulls.parquet"
    )
    with pytest.raises(FileFormatError, match="row 2"):
        read(tmp_path / "nulls.parquet")
    reader = skipping(tmp_path / "nulls.parquet")
    assert len(rows_of(reader)) == 1
    assert (reader.read, reader.bad) == (1, 2)
    pq.write_table(pa.table({"cause": [["a"]], "effect": [["b"]]}), tmp_path / "lists.parquet")
    with pytest.raises(FileFormatError, match="not text"):
        read(tmp_path / "lists.parquet")


def test_invalid_utf8_in_parquet_is_found(tmp_path: Path) -> None:
    broken = pa.array([b"it \xff rained"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"cause": broken, "effect": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(FileFormatError, match="damaged, or its columns are not text"):
        read(tmp_path / "a.parquet")


def test_an_invalid_column_name_in_parquet_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"cause": ["x"], "effect": ["y"], "odd_name": ["z"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"odd_name", b"odd\xffname"))
    with pytest.raises(FileFormatError, match="is damaged"):
        read(path)


def test_a_file_that_vanishes_is_a_clear_error(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", TSV)
    [file] = find_files([str(path)])
    path.unlink()
    with pytest.raises(Cod3sError, match="no file at"):
        list(Reader(file, BOTH).batches())


@pytest.mark.parametrize("name", ["nowhere.tsv", "empty"])
def test_no_files_is_a_clear_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(Cod3sError, match="no file"):
        find_files([str(tmp_path / name)])


def test_a_folder_stands_for_its_files_but_not_the_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.tsv", "a/z.tsv", ".hidden", ".git/a.tsv"):
        written(tmp_path / name, TSV)
    assert [file.path.removeprefix(f"{tmp_path}/") for file in find_files([str(tmp_path)])] == ["a/z.tsv", "b.tsv"]


CELL = st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=30))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> None:
    lines = "".join(f"{cause}\t{effect}\n" for cause, effect in pairs)
    path = written(tmp_path_factory.mktemp("read") / "pairs.tsv", "cause\teffect\n" + lines)
    assert [(row["first"], row["second"]) for row in read(path)] == pairs


@given(st.lists(st.sampled_from([b"good\tline", b"bad", b"\xff\t\xff", b"\0\t"]), min_size=1, max_size=50))
def test_rows_in_are_rows_read_and_rows_bad(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = written(tmp_path_factory.mktemp("read") / "a.tsv", b"\n".join([b"cause\teffect", *lines]))
    reader = skipping(path)
    rows_of(reader)
    assert (reader.read, reader.bad) == (lines.count(b"good\tline"), len(lines) - lines.count(b"good\tline"))


@pytest.mark.parametrize("size", [MAX_LINE_BYTES - 2, MAX_LINE_BYTES, MAX_LINE_BYTES + 1, 5 * MAX_LINE_BYTES])
def test_lines_near_the_limit_do_not_disturb_their_neighbours(tmp_path: Path, size: int) -> None:
    rows = [b"cause\teffect", b"a\tb", b"x" * (size - 2) + b"\ty", b"c\td"] * 2
    path = written(tmp_path / "a.tsv", b"\n".join(rows[:4] + rows[5:]))
    reader = skipping(path)
    found = [row["first"] for row in rows_of(reader)]
    long = [] if size > MAX_LINE_BYTES else ["x" * (size - 2)]
    assert found == ["a", *long, "c", "a", *long, "c"]
    assert reader.bad == (2 if size > MAX_LINE_BYTES else 0)
