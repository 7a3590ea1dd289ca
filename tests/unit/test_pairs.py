"""Pairs are read whole or the error names the line; no row is lost silently."""

import copy
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cod3s.corpus.pairs import find_files
from cod3s.corpus.prepare_config import PrepareConfig
from cod3s.corpus.relations import CAUSE, EFFECT, Relation, find_relations
from cod3s.corpus.sift import Sifter
from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.scan import MAX_LINE_BYTES

CAUSAL = {"cause": "it rained", "effect": "we stayed in", "order": "so", "pattern": "comma-so", "corpus": "mine"}
PAIR = {"source": "it rained", "target": "we stayed in", "order": "so", "pattern": "comma-so", "corpus": "mine"}
PAIR |= {"split": ""}
TSV = "\t".join(CAUSAL) + "\n" + "\t".join(CAUSAL.values()) + "\n"
QUOTED = "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in (CAUSAL, CAUSAL.values()))
(REPLY,) = find_relations("reply", "{source} {target}")


def sift(
    path: Path, relation: Relation = EFFECT, *, alone: bool = False, bad_rows: str = "stop"
) -> tuple[list[dict[str, str]], dict[str, object]]:
    """The rows that a file has for a relation, without filters, and their counts."""
    name = relation.name if alone or relation is REPLY else "both"
    config = PrepareConfig(
        relation=name, template=relation.template if relation is REPLY else "", filter="none", bad_rows=bad_rows
    )
    part = path.with_name("part")
    Sifter(config)(path, relation, part)
    rows = pq.read_table(part.with_suffix(".parquet"), columns=list(PAIR)).to_pylist()
    return rows, json.loads(part.with_suffix(".json").read_text())


def read(path: Path, relation: Relation = EFFECT, *, alone: bool = False) -> list[dict[str, str]]:
    return sift(path, relation, alone=alone)[0]


def written(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


SAME_PAIR = [
    ("pairs.tsv", TSV.encode(), "a TSV file with a header"),
    ("pairs.txt", TSV.encode(), "the name does not matter, the content does"),
    ("pairs.tsv", b"\xef\xbb\xbf" + TSV.replace("\n", "\r\n").encode(), "a byte-order mark and Windows line ends"),
    ("pairs.tsv", TSV.rstrip("\n").encode(), "no line end at the end"),
    ("pairs.tsv", TSV.replace("\n", "\n\n").encode(), "empty lines hold no pair"),
    ("pairs.tsv.gz", gzip.compress(TSV.encode()), "gzip"),
    ("pairs.tsv.gz", gzip.compress(TSV[:30].encode()) + gzip.compress(TSV[30:].encode()), "gzip in two members"),
    ("pairs.csv", TSV.replace("\t", ",").encode(), "a CSV file with a header"),
    ("pairs.csv.gz", gzip.compress(QUOTED.encode()), "CSV with quotes"),
    ("pairs.jsonl", json.dumps(CAUSAL).encode(), "one JSON object per line"),
    ("pairs.jsonl", json.dumps({"id": 7, **CAUSAL}).encode() + b"\n\n", "other fields are ignored"),
]


def test_every_format_gives_the_same_pair(tmp_path: Path) -> None:
    for name, content, reason in SAME_PAIR:
        assert read(written(tmp_path / name, content)) == [PAIR], reason


def test_parquet_gives_the_same_pair_also_with_dictionaries_and_without_extras(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([CAUSAL]), tmp_path / "pairs.parquet")
    assert read(tmp_path / "pairs.parquet") == [PAIR]
    columns = {name: pa.array([CAUSAL[name]]).dictionary_encode() for name in ("effect", "cause")}
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")
    assert read(tmp_path / "pairs.parquet") == [PAIR | {"order": "", "pattern": "", "corpus": ""}]


def test_a_worker_elsewhere_reads_the_same_sides(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", TSV.replace("so", ""))
    sent = copy.deepcopy(CAUSE)
    assert sift(path, sent) == sift(path, CAUSE)
    assert read(path, sent)[0]["source"] == "we stayed in"


def test_rows_that_name_their_relation_go_to_it_as_they_are(tmp_path: Path) -> None:
    lines = ["split\tsource\trelation\ttarget", "train\tit rained\teffect\twe stayed in"]
    lines += ["validation\tit rained\tcause\ta front came", "test\thello\treply\thi there"]
    path = written(tmp_path / "answers.tsv.gz", gzip.compress("\n".join(lines).encode()))
    found = {relation.name: sift(path, relation) for relation in (EFFECT, CAUSE, REPLY)}
    sides = {
        name: [(row["source"], row["target"], row["split"]) for row in rows] for name, (rows, _) in found.items()
    }
    assert sides == {
        "effect": [("it rained", "we stayed in", "train")],
        "cause": [("it rained", "a front came", "dev")],
        "reply": [("hello", "hi there", "test")],
    }
    assert found["effect"][1]["removed"] == {"relation": 2}


def test_causalbank_as_released_says_the_order_by_its_folder(tmp_path: Path) -> None:
    because = written(tmp_path / "because_mode" / "because_of", "because of\twe stayed in\tthe rain\n")
    therefore = written(tmp_path / "therefore_mode" / "therefore", "therefore\tit rained\twe stayed in\n")
    assert find_files([tmp_path]) == [because, therefore]
    (row,) = read(because, CAUSE)
    assert row == {
        **{"source": "we stayed in", "target": "the rain", "order": "because"},
        **{"pattern": "because of", "corpus": "causalbank", "split": ""},
    }
    assert [(row["source"], row["target"], row["order"]) for row in read(therefore)] == [
        ("it rained", "we stayed in", "so")
    ]
    assert read(because, EFFECT) == [], "its order teaches the other relation"


def test_a_relation_of_your_own_reads_source_and_target_and_no_order(tmp_path: Path) -> None:
    path = written(tmp_path / "dialogue.tsv", "target\tsource\torder\nfine, thanks\thow are you?\tanything\n")
    assert [(row["source"], row["target"], row["order"]) for row in read(path, REPLY)] == [
        ("how are you?", "fine, thanks", "")
    ]


def test_for_one_causal_relation_source_and_target_are_enough(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", "source\ttarget\nwe stayed in\tit rained\n")
    assert read(path, CAUSE, alone=True)[0]["source"] == "we stayed in"
    with pytest.raises(FileFormatError, match="'source', 'target', but needs 'cause' and 'effect'") as raised:
        read(path)
    assert "--relation" in raised.value.hint


SIDES = [
    ('cause\teffect\n"it rained\the said \\"no" twice\n', '"it rained', "quotes are ordinary in TSV"),
    ("cause\teffect\nit\u2028rained\u0085\twe\x0bstayed\n", "it rained", "other separators do not end a line"),
    ('cause,effect\n"' + "it rained " * 20_000 + '","we stayed, in"\n', "it rained " * 20_000, "a long cell"),
    ('cause,effect\n"it\nrained",we stayed\n', "it rained", "a quoted cell of two lines"),
    ('{"cause": "caf\\u00e9 \\ud83d\\ude00", "effect": "b"}\n', "café 😀", "JSON escapes"),
    ("cause\teffect\n'); DROP TABLE x; --\tb\n", "'); DROP TABLE x; --", "text is never a part of a query"),
]


def test_cells_are_read_as_they_are(tmp_path: Path) -> None:
    for content, source, reason in SIDES:
        rows = read(written(tmp_path / "it's; --.txt", content))
        assert [row["source"] for row in rows] == [source.strip()], reason


BAD_ROWS = [
    (b"it rained\twe stayed\tso\textra", "line 3: it has more cells", "too many cells"),
    (b"it rained", "line 3: it has fewer cells", "too few cells"),
    (b'{"cause": "it rained", "effect": "we stayed"}', "line 3: it has fewer", "a line of another format"),
    (b"it \xff rained\twe stayed\tso", "line 3: it is not UTF-8", "invalid UTF-8"),
    (b"a" * 10_000_000 + b"\tb\tso", "line 3: it is longer than 1,048,576 bytes", "a line of 10 MB"),
    (b"it rained\twe stayed\tthen", "row 2: its order is neither", "an order that nobody knows"),
    (b"it \0 rained\twe stayed\tso", "row 2: it has a NUL character", "a NUL character"),
]


def test_a_bad_row_is_named_by_its_line(tmp_path: Path) -> None:
    good = b"the lamp broke\tit was dark\tso\n"
    for line, message, reason in BAD_ROWS:
        path = written(tmp_path / "pairs.tsv", b"cause\teffect\torder\n" + good + line + b"\n" + good)
        with pytest.raises(FileFormatError, match=message):
            read(path)
        rows, counts = sift(path, bad_rows="skip")
        assert len(rows) == counts["kept"] == 2, reason
        assert (counts["rows"], counts["removed"]) == (3, {"bad row": 1})
        assert message in counts["bad_rows"][0]


def test_an_unknown_split_is_a_bad_row(tmp_path: Path) -> None:
    path = written(tmp_path / "pairs.tsv", "cause\teffect\tsplit\na b\tc d\tTRAIN\na b\tc e\tlater\n")
    rows, counts = sift(path, bad_rows="skip")
    assert [row["split"] for row in rows] == ["train"]
    assert counts["bad_rows"] == ["pairs.tsv, row 2: its split is not train, dev or test"]


BAD_JSON = [
    '{"cause": "it rained"}',
    '{"cause": "it rained", "effect": null}',
    '{"cause": "it rained", "effect": 7}',
    '{"cause": "it \\u0000 rained", "effect": "b"}',
    '{"cause": "it \\ud800 rained", "effect": "b"}',
    '["it rained", "we stayed"]',
    "it rained\twe stayed",
    '{"cause": "it rai',
    "[" * 100_000,
]


def test_bad_json_lines_are_counted_and_named(tmp_path: Path) -> None:
    good = json.dumps(CAUSAL)
    path = written(tmp_path / "pairs.jsonl", "\n".join([good, *BAD_JSON, good]))
    with pytest.raises(FileFormatError, match=r"row 2: the source or the target is missing.*9 rows are not pairs"):
        read(path)
    rows, counts = sift(path, bad_rows="skip")
    assert rows == [PAIR, PAIR]
    assert counts["removed"] == {"bad row": len(BAD_JSON)}


BAD_FILES = [
    ("a.tsv", b"", "is empty", "an empty file"),
    ("a.tsv", b"\n\n", "is empty", "nothing but empty lines"),
    ("a.txt", b"It rained. We stayed in.\n", "which is not a table", "plain prose"),
    ("a.tsv", b"cause\teffect\tcause\n", "are called 'cause'", "a doubled header"),
    ("a.tsv", b"reason\tresult\n", "columns 'reason', 'result', but needs 'cause' and 'effect'", "other columns"),
    ("a.jsonl", b'{"text": "it rained"}\n', "has the columns 'text', but needs", "other fields"),
    ("a.tsv.gz", gzip.compress(TSV.encode() * 99999)[:-20], "is a damaged gzip file", "a truncated .gz"),
    ("a.tsv.gz", b"this is not gzip", "is a damaged gzip file", "a .gz that is none"),
    ("a.tsv.zst", b"\x28\xb5\x2f\xfd...", "is a Zstandard file", "a packed file that is not gzip"),
    ("a.parquet", b"PAR1 and then nothing", "is a damaged Parquet file", "a truncated Parquet file"),
    ("a.bin", b"\xff\xfe\x00\x01", "is UTF-16 text", "UTF-16"),
    ("a.bin", b"\xff\x00\x01", "which is not a table", "binary"),
    ("a.tsv", b"SQLite format 3\0", "is an SQLite database", "a database"),
    ("a.csv", b'cause,effect\n"it rained,we ran\n', "line 2: a quoted cell", "a cell that does not end"),
    ("a.tsv", b"cause\teffect\na\rb\tc\n", "has a carriage return inside a line", "a lone carriage return"),
]


def test_a_bad_file_is_a_clear_error(tmp_path: Path) -> None:
    for name, content, message, _reason in BAD_FILES:
        with pytest.raises(FileFormatError, match=message):
            read(written(tmp_path / name, content))


def test_nulls_wrong_types_and_invalid_text_in_parquet_are_found(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"cause": ["a b", None, "c\0d"], "effect": ["x", "y", "z"]}), path)
    with pytest.raises(FileFormatError, match=r"row 2: .*is missing"):
        read(path)
    assert sift(path, bad_rows="skip")[1]["removed"] == {"bad row": 2}
    broken = pa.array([b"it \xff rained"], pa.binary()).view(pa.string())
    for cause in ([["a"]], broken):
        pq.write_table(pa.table({"cause": cause, "effect": ["b"]}), path)
        with pytest.raises(FileFormatError, match="damaged, or its columns are not text"):
            read(path)
    pq.write_table(pa.table({"cause": ["x"], "effect": ["y"], "odd_name": ["z"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"odd_name", b"odd\xffname"))
    with pytest.raises(FileFormatError, match="is a damaged"):
        read(path)


def test_no_files_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("nowhere.tsv", "empty", "s3://bucket/pairs"):
        with pytest.raises(Cod3sError, match="no file"):
            find_files([tmp_path / name])


def test_a_folder_stands_for_its_files_but_not_the_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.tsv", "a/z.tsv", ".hidden", ".git/a.tsv"):
        written(tmp_path / name, TSV)
    assert find_files([tmp_path]) == [tmp_path / "a/z.tsv", tmp_path / "b.tsv"]


LINE = st.sampled_from([b"good\tline", b"bad", b"\xff\t\xff", b"\0\t", b"x" * (MAX_LINE_BYTES + 1) + b"\ty"])


@settings(max_examples=20)
@given(st.lists(LINE, min_size=1, max_size=30))
def test_every_row_is_kept_or_counted(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = written(tmp_path_factory.mktemp("read") / "a.tsv", b"\n".join([b"cause\teffect", *lines]))
    rows, counts = sift(path, bad_rows="skip")
    good = lines.count(b"good\tline")
    assert (len(rows), counts["rows"]) == (good, len(lines))
    assert counts["removed"].get("bad row", 0) == len(lines) - good
