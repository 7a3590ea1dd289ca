"""`cod3s select` in a pipe: records in, chosen records out as they came; and the tables it reads."""

import csv
import io
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.tables import Table, kind_of
from cod3s.selection.groups import open_candidates, read_groups
from conftest import Run

LINES = "He called a locksmith.\nhe called a locksmith\nShe slept in the car.\n\nHe was late for work.\n"
RECORDS = [
    '{"prompt": 1, "text": "He called a locksmith.", "score": -1.50, "extra": {"né": [1]}}',
    '{"prompt": 1, "text": "he called a locksmith", "score": -0.5}',
    '{"prompt": 1, "text": "She slept in the car.", "score": -3}',
    '{"prompt": 2, "text": "It rained.", "score": 0}',
]


def test_lines_come_out_as_they_are_and_blank_ones_never(cod3s: Run) -> None:
    done = cod3s("select", "-", "-k", "3", stdin=LINES)
    assert done.stdout.splitlines() == ["He called a locksmith.", "She slept in the car.", "He was late for work."]
    assert (done.returncode, done.stderr) == (0, "")


def test_groups_are_chosen_from_one_by_one_and_records_keep_every_byte(cod3s: Run, tmp_path: Path) -> None:
    file = tmp_path / "outputs.jsonl"
    file.write_text("\n".join(RECORDS) + "\n", encoding="utf-8")
    done = cod3s("select", file, "-k", "1", "--group-by", "prompt", "--score-field", "score")
    assert done.stdout.splitlines() == [RECORDS[1], RECORDS[3]]


def test_a_group_comes_out_when_it_is_whole_though_the_pipe_stays_open(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cod3s", "select", "-", "-k", "1", "--group-by", "prompt"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write("\n".join(RECORDS) + "\n")
        running.stdin.flush()
        found = ThreadPoolExecutor(1).submit(running.stdout.readline)
        try:
            assert found.result(timeout=120) == RECORDS[0] + "\n"
        finally:
            running.kill()


def test_blank_lines_of_a_table_hold_nothing(here: Run) -> None:
    done = here("select", "-", "-k2", "--column", "reply", stdin="id,reply\n7,He slept\n\n8,It rained\n\n")
    assert done.stdout.splitlines() == ["id,reply", "7,He slept", "8,It rained"]


def test_json_names_group_indices_signatures_and_whole_records(here: Run) -> None:
    done = here(
        "select", "-", "-k2", "--group-by", "prompt", "--score-field", "score", "--json", "--show-duplicates",
        stdin="\n".join(RECORDS),
    )  # fmt: skip
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert (first["group"], first["k"], first["method"]) == (1, 2, "dpp")
    best, other = first["selected"]
    assert (best["index"], best["score"], best["duplicates"], best["line"]) == (1, -0.5, [0], 2)
    assert best["duplicate_texts"] == ["He called a locksmith."]
    assert set(best["signature"]) == {"0", "1"}
    assert len(best["signature"]) == first["settings"]["bits"]
    assert other["record"] == json.loads(RECORDS[2])
    assert [one["index"] for one in second["selected"]] == [0]
    assert second["remarks"] == ["there was only 1 candidate"]


def test_cells_are_quoted_again_and_duplicates_are_one_more_column(here: Run) -> None:
    table = 'id,reply\n7,"He slept, badly"\n8,"He slept, badly."\n9,"She said ""no"""\n'
    done = here("select", "-", "-k2", "--text-field", "reply", "--show-duplicates", "--method", "mmr", stdin=table)
    assert list(csv.reader(io.StringIO(done.stdout))) == [
        ["id", "reply", "duplicates"],
        ["7", "He slept, badly", '["He slept, badly."]'],
        ["9", 'She said "no"', "[]"],
    ]


def test_a_group_that_comes_again_is_told(here: Run) -> None:
    done = here("select", "-", "--group-by", "prompt", stdin="\n".join([RECORDS[0], RECORDS[3], RECORDS[2]]))
    assert len(done.stdout.splitlines()) == 3
    assert "prompt 1 appears again in line 3" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "stdin", "message", "code"),
    [
        (["--score-field", "score"], '{"text": "a", "score": NaN}', "line 1: the score in 'score' is nan", 1),
        (["--min-hamming", "3", "--method", "dp"], "a", "no method is called 'dp'", 2),
        (["--format", "cvs"], "a", "no format is called 'cvs'", 2),
    ],
)
def test_bad_input_ends_with_a_clear_error(
    arguments: list[str], stdin: str, message: str, code: int, here: Run
) -> None:
    done = here("select", "-", *arguments, stdin=stdin)
    assert done.returncode == code
    assert message in done.stderr
    assert not done.stdout


def groups_of(tmp_path: Path, content: str, name: str = "file", **options: str | None) -> list[list[str]]:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    fields = {"text_field": None, **{key: value for key, value in options.items() if key != "kind"}}
    with open_candidates(path, options.get("kind"), fields["text_field"]) as table:
        return [[one.text for one in group.candidates] for group in read_groups(table, **fields)]


@pytest.mark.parametrize(
    ("content", "name", "options", "wanted", "reason"),
    [
        ("a\n\nb", "file", {}, [["a", "", "b"]], "bare lines, blank ones counted"),
        ("", "file", {}, [[]], "an empty file is one empty group"),
        ('{"text": "a"}\n\n{"text": "b"}', "file", {}, [["a", "b"]], "JSON lines are known by their first one"),
        ('{"text": "a"}', "file", {"kind": "lines"}, [['{"text": "a"}']], "unless told otherwise"),
        (
            "x,t\n1,a\n1,b\n2,c\n",
            "file",
            {"text_field": "t", "group_by": "x"},
            [["a", "b"], ["c"]],
            "named column",
        ),
        ('text\ttag\na "b\tz\n', "f.tsv", {}, [['a "b']], "quotes are ordinary between tabs"),
        ('text\n"two\nlines"\n', "f.csv", {}, [["two\nlines"]], "a cell of two lines"),
        ('{"text": "a", "g": null}', "f.jsonl", {}, [["a"]], "a field that nobody asks for may be empty"),
    ],
)
def test_candidates_are_read_from(
    content: str, name: str, options: dict[str, str], wanted: list[list[str]], reason: str, tmp_path: Path
) -> None:
    assert groups_of(tmp_path, content, name, **options) == wanted, reason


@pytest.mark.parametrize(
    ("content", "name", "options", "message"),
    [
        ('{"text": "a"}\n{"text": 5}', "f.jsonl", {}, "line 2: no text in a field 'text'"),
        ('{"text": "a"}\n[1]', "f.jsonl", {}, "line 2: not a JSON object"),
        ('{"text": "a"}\n{', "f.jsonl", {}, "line 2: not valid JSON"),
        ('{"text": "a"}', "f.jsonl", {"group_by": "g"}, "line 1: nothing in a field 'g'"),
        ('{"text": "a", "s": true}', "f.jsonl", {"score_field": "s"}, "the score in 's' is True"),
        ('{"text": "a", "s": "x"}', "f.jsonl", {"score_field": "s"}, "the score in 's' is 'x'"),
        ("text,s\na,\n", "f.csv", {"score_field": "s"}, "the score in 's' is ''"),
        ("text,s\na\n", "f.csv", {}, "line 2: 1 cells, but the header has 2"),
        ("texts\na\n", "f.csv", {}, "no column 'text'"),
        ("a\n", "f.txt", {"score_field": "s"}, "plain lines, which have no field 's'"),
    ],
)
def test_a_file_that_cannot_be_read_names_the_place(
    content: str, name: str, options: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(FileFormatError, match=message):
        groups_of(tmp_path, content, name, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--column", "answer"), "no column 'answer'"),
        (("--score-field", "score"), "no column 'score'"),
        (("--group-by", "prompt"), "no column 'prompt'"),
        (("--score-with", "critic", "--source-field", "premise"), "no column 'premise'"),
    ],
)
@pytest.mark.parametrize("name", ["r.csv", "r.txt"])
def test_a_missing_column_is_noticed_before_the_header_is_printed(
    name: str, options: tuple[str, ...], message: str, here: Run, tmp_path: Path
) -> None:
    (tmp_path / name).write_text("text,other\nIt rained.,1\n", encoding="utf-8")
    column = () if "--column" in options else ("--column", "text")
    done = here("select", name, *column, *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("lines", "remark"),
    [
        ("It rained.\nWe slept.\n", "there were only 2 candidates"),
        ("It rained.\nit rained\nWe slept.\n", "only 2 of 3 candidates differ"),
        ("It rained.\n", "there was only 1 candidate"),
    ],
)
def test_fewer_than_k_are_explained(lines: str, remark: str, here: Run) -> None:
    assert here("select", "-", "-k", "100", stdin=lines).stderr == f"{remark}\n"


def test_an_unknown_format_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(Cod3sError) as caught:
        groups_of(tmp_path, "a", kind="json")
    assert "jsonl" in caught.value.hint


# The csv of Python 3.10 cannot write the character 0.
CELLS = st.text(st.characters(exclude_characters="\r" if sys.version_info >= (3, 11) else "\r\0", codec="utf-8"))


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2)))
def test_cells_written_by_csv_are_read_back(rows: list[list[str]]) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([["a", "b"], *rows])
    table = Table(io.StringIO(written.getvalue(), newline=""), "made", "csv")
    assert [row.record for row in table] == rows


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.jsonl", "jsonl"),
        ("a.csv.gz", "csv"),
        ("a.b.tsv.gz", "tsv"),
        ("a.parquet", "parquet"),
        ("a.txt", None),
        ("-", None),
    ],
)
def test_the_kind_is_known_by_the_name(name: str, kind: str | None) -> None:
    assert kind_of(Path(name)) == kind
