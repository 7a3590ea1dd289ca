"""`cod3s select` in a pipe: records come out as they came in, near duplicates go to a file of their own."""

import csv
import io
import json
from pathlib import Path

import pytest

from cod3s.errors import FileFormatError
from cod3s.selection.groups import read_candidates
from conftest import Run

LINES = "He called a locksmith.\nhe called a locksmith\nShe slept in the car.\n\nHe was late for work.\n"
RECORDS = [
    '{"prompt": 1, "text": "He called a locksmith.", "score": -1.50, "extra": {"né": [1]}}',
    '{"prompt": 2, "text": "It rained.", "score": 0}',
    '{"prompt": 1, "text": "he called a locksmith", "score": -0.5}',
    '{"prompt": 1, "text": "She slept in the car.", "score": -3}',
]


def test_lines_come_out_as_they_are_and_blank_ones_never(cod3s: Run) -> None:
    done = cod3s("select", "-", "-k", "3", stdin=LINES)
    assert [line.lower().strip(".") for line in done.stdout.splitlines()] == [
        "he called a locksmith",
        "she slept in the car",
        "he was late for work",
    ]
    assert done.returncode == 0


def test_groups_are_chosen_from_in_any_order_and_records_keep_every_byte(here: Run, tmp_path: Path) -> None:
    (tmp_path / "outputs.jsonl").write_text("\r\n".join(RECORDS) + "\r\n", encoding="utf-8", newline="")
    done = here(
        "select", "outputs.jsonl", "-k", "1", "--by", "prompt", "--score-field", "score", "-o", "out.jsonl"
    )
    assert done.returncode == 0
    assert (tmp_path / "out.jsonl").read_bytes().decode() == f"{RECORDS[2]}\r\n{RECORDS[1]}\r\n"


def test_json_names_group_indices_signatures_and_whole_records(here: Run) -> None:
    done = here(
        "select", "-", "-k2", "--by", "prompt", "--score-field", "score", "--json", "--show-duplicates",
        stdin="\n".join(RECORDS),
    )  # fmt: skip
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert (first["group"], first["k"], first["method"]) == (1, 2, "representatives")
    best, other = first["selected"]
    assert (best["index"], best["score"], best["line"]) == (2, -0.5, 3)
    assert (best["duplicates"], best["similarities"]) == ([0], [1.0])
    assert best["duplicate_texts"] == ["He called a locksmith."]
    assert set(best["signature"]) == {"0", "1"}
    assert len(best["signature"]) == first["settings"]["bits"]
    assert other["record"] == json.loads(RECORDS[3])
    assert [chosen["index"] for chosen in second["selected"]] == [1]
    assert second["remarks"] == ["there was only 1 candidate"]


def test_cells_are_quoted_again_and_duplicates_are_one_more_column(here: Run) -> None:
    table = 'id,reply\n7,"He slept, badly"\n\n8,"He slept, badly."\n9,"She said ""no"""\n'
    done = here("select", "-", "-k2", "--column", "reply", "--show-duplicates", stdin=table)
    assert list(csv.reader(io.StringIO(done.stdout))) == [
        ["id", "reply", "duplicates"],
        ["7", "He slept, badly", '["He slept, badly."]'],
        ["9", 'She said "no"', "[]"],
    ]
    both = here("select", "-", "-k1", "--column", "id", "--column", "reply", "--json", stdin=table)
    assert json.loads(both.stdout)["selected"][0]["text"].startswith(("7\n", "8\n", "9\n"))


def test_threshold_keeps_the_better_of_two_and_says_what_the_other_repeats(here: Run, tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("it rained\n", encoding="utf-8")
    arguments = ("--threshold", "0.9", "--against", "test.txt", "--duplicates", "left.jsonl")
    done = here("select", "-", *arguments, stdin="\n".join(RECORDS))
    assert done.stdout.splitlines() == [RECORDS[0], RECORDS[3]]
    assert "1 left out because a text of the others says the same" in done.stderr
    leak, duplicate = map(json.loads, (tmp_path / "left.jsonl").read_text(encoding="utf-8").splitlines())
    assert leak == {"line": 2, "leak_of": 1, "similarity": 1.0, "record": json.loads(RECORDS[1])}
    assert (duplicate["line"], duplicate["duplicate_of"], duplicate["similarity"]) == (3, 1, 1.0)
    done = here("select", "-", "--threshold", "0.9", "--json", stdin="\n".join(RECORDS))
    record = json.loads(done.stdout)
    assert record["k"] is None
    assert [(chosen["duplicates"], chosen["similarities"]) for chosen in record["selected"]] == [
        ([2], [1.0]),
        ([], []),
        ([], []),
    ]


def test_history_on_the_command_line(here: Run, tmp_path: Path) -> None:
    (tmp_path / "shown.txt").write_text("He called a locksmith\n", encoding="utf-8")
    done = here("select", "-", "-k2", "--unlike", "shown.txt", stdin=LINES)
    assert "locksmith" not in done.stdout
    (tmp_path / "wish.txt").write_text("A locksmith came.\n", encoding="utf-8")
    assert "locksmith" in here("select", "-", "-k1", "--like", "wish.txt", stdin=LINES).stdout


def test_parquet_comes_out_as_json_lines_or_as_parquet(here: Run, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = ["He called a locksmith.", "he called a locksmith", "She slept in the car."]
    parquet.write_table(
        arrow.table({"answer": texts, "n": [1, 2, 3], "g": ["a", "a", "b"]}), tmp_path / "in.parquet"
    )
    done = here("select", "in.parquet", "-k1", "--column", "answer", "--by", "g", "--score-field", "n")
    assert [json.loads(line)["n"] for line in done.stdout.splitlines()] == [2, 3]
    here("select", "in.parquet", "--threshold", "0.9", "--column", "answer", "-o", "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet").column("n").to_pylist() == [1, 3]


@pytest.mark.parametrize(
    ("arguments", "stdin", "message", "code"),
    [
        (["--score-field", "score"], '{"text": "a", "score": NaN}', "line 1: the score in 'score' is nan", 1),
        (["--method", "dp"], "a", "dp", 2),
        (["--format", "cvs"], "a", "no format is called 'cvs'", 2),
        (["--threshold", "1.5"], "a", "threshold is 1.5", 2),
        (["--threshold", "0.9", "-k", "3"], "a", "without -k", 2),
        (["--against", "x.txt"], "a", "needs --threshold", 2),
        (["--unlike", "missing.txt"], "a", "no file at missing.txt", 1),
        (["--by", "g"], '{"text": "a"}', "line 1: nothing in a field 'g'", 1),
        (["--column", "t"], "text,s\na,1\n", "no column 't'", 1),
        (["--column", "text", "--score-field", "score"], "text,s\na,1\n", "no column 'score'", 1),
        (["--column", "text", "--by", "prompt"], "text,s\na,1\n", "no column 'prompt'", 1),
        (
            ["--column", "text", "--score-with", "critic", "--source-field", "x"],
            "text,s\na,1\n",
            "no column 'x'",
            1,
        ),
    ],
)
def test_bad_input_ends_with_a_clear_error_before_anything_is_printed(
    arguments: list[str], stdin: str, message: str, code: int, here: Run
) -> None:
    done = here("select", "-", *arguments, stdin=stdin)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr


def test_fewer_than_k_are_explained(here: Run) -> None:
    for lines, remark in (
        ("It rained.\nWe slept.\n", "there were only 2 candidates"),
        ("It rained.\nit rained\nWe slept.\n", "only 2 of 3 candidates differ"),
        ("It rained.\n", "there was only 1 candidate"),
    ):
        assert here("select", "-", "-k", "100", stdin=lines).stderr == f"{remark}\n"


def test_candidates_are_read_from(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content, name, options, wanted, reason in (
        ("a\n\nb", "file", {}, ["a", "", "b"], "plain lines, blank ones counted"),
        ("", "file", {}, [], "an empty file"),
        ('{"text": "a"}\n\n{"text": "b"}', "file", {}, ["a", "b"], "JSON lines are known by their first one"),
        ('{"text": "a"}', "file", {"kind": "lines"}, ['{"text": "a"}'], "unless the format says otherwise"),
        ("x,t\n1,a\n2,b\n", "file", {"columns": ["t"]}, ["a", "b"], "named column"),
        ('text\ttag\na "b\tz\n', "f.tsv", {}, ['a "b'], "quotes are ordinary between tabs"),
        ('text\n"two\nlines"\n', "f.csv", {}, ["two\nlines"], "a cell of two lines"),
        ('{"text": "a", "g": null}', "f.jsonl", {}, ["a"], "a field that is not needed may be empty"),
    ):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        assert read_candidates(path, **options).texts == wanted, reason


def test_a_file_that_cannot_be_read_names_the_place(tmp_path: Path) -> None:
    for content, name, options, message in (
        ('{"text": "a"}\n{"text": 5}', "f.jsonl", {}, "line 2: no text in a field 'text'"),
        ('{"text": "a"}\n[1]', "f.jsonl", {}, "line 2: not a JSON object"),
        ('{"text": "a"}\n{', "f.jsonl", {}, "line 2: not valid JSON"),
        ('{"text": "a", "s": true}', "f.jsonl", {"score_field": "s"}, "the score in 's' is True"),
        ("text,s\na,\n", "f.csv", {"score_field": "s"}, "the score in 's' is ''"),
        ("text,s\na\n", "f.csv", {}, "line 2: 1 cells, but the header has 2"),
        ("texts\na\n", "f.csv", {}, "no column 'text'"),
        ("a\n", "f.txt", {"score_field": "s"}, "plain lines, which have no field 's'"),
        ("a\n", "f.xlsx", {}, "is a spreadsheet"),
        ("a\n", "f.parquet", {}, "not a readable Parquet file"),
    ):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        with pytest.raises(FileFormatError, match=message.replace("[", r"\[")):
            read_candidates(path, **options)
