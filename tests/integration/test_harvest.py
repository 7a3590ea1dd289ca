"""`cod3s harvest` from files to Parquet: every format, any number of workers, counts that add up, bad input."""

import gzip
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cod3s.cli.main import app
from cod3s.errors import Cod3sError, FileFormatError, UsageError
from cod3s.harvest import documents
from cod3s.harvest.extract import find_pairs
from cod3s.harvest.pipeline import COLUMNS, OVER_LIMIT, harvest
from cod3s.io.tables import open_table

STORY = """# The ferry

The harbour froze in the night, so the ferry stayed at the pier. The captain was not sorry.

**Ines:** Well, I missed the wedding because the ferry never came. It was cold, so cold that the bells cracked.

Nobody had fed the stove. So we had to sleep in our coats. Did you stay because the fire was out?
"""
PAIRS = [
    ("The harbour froze in the night", "the ferry stayed at the pier", "so", "so"),
    ("the ferry never came", "I missed the wedding", "because", "because"),
    ("Nobody had fed the stove", "we had to sleep in our coats", "sentence-so", "so"),
]


def rows(path: Path) -> list[tuple[str, ...]]:
    table = pq.read_table(path)
    assert tuple(table.column_names) == COLUMNS
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def write_story(folder: Path, name: str) -> Path:
    path = folder / name
    paragraphs = STORY.split("\n\n")
    json_lines = "".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(paragraphs))
    tsv = "id\ttext\n" + "".join(f"{n}\t{text.strip()}\n" for n, text in enumerate(paragraphs))
    csv = "id,text\n" + "".join(f'{n},"{text}"\n' for n, text in enumerate(paragraphs))
    tables = {".jsonl": json_lines, ".tsv": tsv, ".csv": csv}
    content = next((table for kind, table in tables.items() if kind in name), STORY).encode()
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"text": [*paragraphs, None]}), path)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(content))
    else:
        path.write_bytes(content)
    return path


def test_every_format_gives_the_same_pairs(tmp_path: Path) -> None:
    for name in ("a.csv", "a.tsv.gz", "a.txt", "a.md", "a.jsonl", "a.parquet", "a.txt.gz", "a.jsonl.gz"):
        summary = harvest([write_story(tmp_path, name)], tmp_path / "pairs.parquet")
        assert rows(tmp_path / "pairs.parquet") == [(*pair, name) for pair in PAIRS], name
        assert (summary.files, summary.pairs, summary.sentences) == (1, 3, 7)


def assert_adds_up(summary, output: Path) -> None:
    assert summary.matched == summary.kept.total() + summary.dropped.total()
    assert summary.pairs == summary.kept.total() == pq.read_metadata(output).num_rows


@pytest.mark.parametrize("limit", [None, 2, 100])
def test_counts_add_up_with_and_without_a_limit(limit: int | None, tmp_path: Path) -> None:
    files = [write_story(tmp_path, "a.txt"), write_story(tmp_path, "b.jsonl")]
    output = tmp_path / "pairs.parquet"
    summary = harvest(files, output, limit=limit)
    assert_adds_up(summary, output)
    assert summary.pairs == min(6, limit or 6)
    assert rows(output) == ([(*p, "a.txt") for p in PAIRS] + [(*p, "b.jsonl") for p in PAIRS])[:limit]
    if limit == 2:
        assert summary.dropped[OVER_LIMIT] == 3 - limit


def test_any_number_of_workers_gives_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "PIECE", 500)
    source = tmp_path / "long.txt"
    source.write_text((STORY + "\n") * 40, encoding="utf-8")
    summaries = [harvest([source], tmp_path / f"{workers}.parquet", workers=workers) for workers in (1, 2, 3)]
    assert rows(tmp_path / "1.parquet") == rows(tmp_path / "2.parquet") == rows(tmp_path / "3.parquet")
    assert summaries[0] == summaries[1] == summaries[2]
    assert_adds_up(summaries[0], tmp_path / "1.parquet")
    assert summaries[0].pairs == 120


def test_a_line_of_ten_megabytes_is_read_in_small_pieces(tmp_path: Path) -> None:
    line = "The road was closed, so Mr. Orr walked home. Nobody had come. So we had to eat alone. "
    copies = 10_000_000 // len(line)
    (tmp_path / "line.txt").write_text(line * copies, encoding="utf-8")
    pieces = [piece.text for piece in documents.read_pieces(tmp_path / "line.txt", column="text")]
    assert "".join(pieces) == line * copies
    assert max(map(len, pieces)) <= 2 * documents.PIECE
    cut = [pair for piece in pieces[:3] for pair in find_pairs(piece).pairs]
    assert cut == find_pairs("".join(pieces[:3])).pairs


SENTENCES = [
    "The road was closed, so we walked home.",
    "Nobody had come.",
    "So we had to eat alone.",
    "Mr. Orr slept.",
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*SENTENCES, "\n\n", " "]), max_size=60))
def test_cutting_into_pieces_neither_loses_nor_makes_pairs(parts: list[str]) -> None:
    text = " ".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "PIECE", 1200)
        pieces = list(documents._cut_to_size([text[n : n + 300] for n in range(0, len(text), 300)]))
    assert "".join(pieces) == text
    assert [pair for piece in pieces for pair in find_pairs(piece).pairs] == find_pairs(text).pairs


def bad_file(folder: Path, kind: str) -> Path:
    good = STORY.encode() * 2000
    contents = {
        "latin1.txt": b"The caf\xe9 was shut, so we left.",
        "late.txt": good[:100_000] + b"\xff\xfe" + good[:10],
        "cut.txt.gz": gzip.compress(good)[:-20],
        "a.txt.zst": b"\x28\xb5\x2f\xfd\0",
        "noise.txt.gz": b"this is not gzip",
        "empty.txt": b"",
        "blank.txt": b" \n\n \n",
        "empty.txt.gz": gzip.compress(b""),
        "bad.jsonl": b'{"text": "Fine."}\n{"text": \n',
        "nofield.jsonl": b'{"text": "Fine."}\n{"body": "No text."}\n',
        "list.jsonl": b'["text"]\n',
        "number.jsonl": b'{"text": 5}\n',
        "noise.parquet": b"PAR1 this is not parquet",
    }
    path = folder / kind
    if kind == "folder.txt":
        path.mkdir()
    elif kind == "nocolumn.parquet":
        pq.write_table(pa.table({"txt": ["Fine."]}), path)
    elif kind == "numbers.parquet":
        pq.write_table(pa.table({"text": [5]}), path)
    elif kind == "packed.parquet.gz":
        path.write_bytes(gzip.compress(b"x"))
    elif kind in contents:
        path.write_bytes(contents[kind])
    return path


BAD = [
    ("latin1.txt", "latin1.txt is not UTF-8 text: invalid continuation byte at byte 7", "the place is named"),
    ("late.txt", "invalid start byte at byte 100000", "the place is counted from the start of the file"),
    ("cut.txt.gz", "cut.txt.gz is a damaged gzip file", "truncated gzip"),
    ("a.txt.zst", "a.txt.zst is a Zstandard file", "packed with anything but gzip"),
    ("noise.txt.gz", "damaged gzip", "no gzip at all"),
    ("empty.txt", "no text in .*empty.txt", "nothing in it"),
    ("blank.txt", "no text in .*blank.txt", "only space in it"),
    ("empty.txt.gz", "no text in .*empty.txt.gz", "nothing in it"),
    ("folder.txt", "is a folder", "a folder"),
    ("missing.txt", "no file at .*missing.txt", "no such file"),
    ("bad.jsonl", "bad.jsonl, line 2: not valid JSON", "the line is named"),
    ("nofield.jsonl", "nofield.jsonl, line 2: no text in a field 'text'", "the line and the field are named"),
    ("list.jsonl", "list.jsonl, line 1", "JSON, but no object"),
    ("number.jsonl", "number.jsonl, line 1", "the field is no text"),
    ("nocolumn.parquet", "nocolumn.parquet has no column 'text'", "the column is missing"),
    ("numbers.parquet", "line 1: no text in a field 'text'", "the column is no text"),
    ("noise.parquet", "noise.parquet is not a readable Parquet file", "no Parquet at all"),
    ("packed.parquet.gz", "is not a readable Parquet file", "Parquet cannot be streamed"),
]


def test_bad_input_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    output = tmp_path / "out" / "pairs.parquet"
    output.write_text("the result of an earlier run")
    for kind, message, reason in BAD:
        with pytest.raises(Cod3sError, match=message):
            harvest([bad_file(tmp_path, kind)], output)
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["pairs.parquet"], reason
        assert output.read_text() == "the result of an earlier run"


def test_invalid_bytes_can_be_replaced(tmp_path: Path) -> None:
    summary = harvest([bad_file(tmp_path, "late.txt")], tmp_path / "pairs.parquet", errors="replace")
    assert_adds_up(summary, tmp_path / "pairs.parquet")
    assert summary.pairs > 100


def test_one_empty_file_among_others_is_reported_and_no_error(tmp_path: Path) -> None:
    files = [bad_file(tmp_path, "empty.txt"), write_story(tmp_path, "a.txt")]
    summary = harvest(files, tmp_path / "pairs.parquet")
    assert (summary.empty, summary.pairs) == ([str(files[0])], 3)


def test_a_file_that_vanishes_while_others_are_read_is_an_error(tmp_path: Path) -> None:
    files = [write_story(tmp_path, "a.txt"), write_story(tmp_path, "b.txt")]
    with pytest.raises(Cod3sError, match=r"no file at .*b\.txt"):
        harvest(files, tmp_path / "out" / "pairs.parquet", progress=lambda _bytes: files[1].unlink())
    assert not list((tmp_path / "out").iterdir())


def test_the_output_may_not_be_an_input_or_a_folder(tmp_path: Path) -> None:
    source = write_story(tmp_path, "a.parquet")
    with pytest.raises(Cod3sError, match="also an input"):
        harvest([source], source)
    with pytest.raises(Cod3sError, match="is a folder"):
        harvest([source], tmp_path)


def table_rows(path: Path) -> list[tuple[str, ...]]:
    with open_table(path) as table:
        get = [table.text(name) for name in COLUMNS]
        return [tuple(field(row) for field in get) for row in table]


def test_every_output_format_holds_the_same_pairs(tmp_path: Path) -> None:
    for name in ("p.parquet", *(f"p.{kind}{gz}" for kind in ("tsv", "csv", "jsonl") for gz in ("", ".gz"))):
        harvest([write_story(tmp_path, "a.txt")], tmp_path / name)
        assert table_rows(tmp_path / name) == [(*pair, "a.txt") for pair in PAIRS], name


def test_the_name_of_the_output_decides_its_format(tmp_path: Path) -> None:
    harvest([write_story(tmp_path, "a.txt")], tmp_path / "p.tsv")
    assert (tmp_path / "p.tsv").read_text(encoding="utf-8").startswith("cause\teffect\tpattern\torder\tcorpus\n")
    harvest([write_story(tmp_path, "a.txt")], tmp_path / "p.jsonl")
    record = json.loads((tmp_path / "p.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert tuple(record) == COLUMNS


def test_an_output_name_without_a_known_format_is_an_error(tmp_path: Path) -> None:
    for name in ("pairs", "pairs.xlsx", "pairs.parquet.gz", "pairs.gz", "pairs.tsv.zst"):
        with pytest.raises(UsageError, match="its format is not known"):
            harvest([write_story(tmp_path, "a.txt")], tmp_path / name)
        assert not (tmp_path / name).exists()


def test_an_existing_output_is_only_replaced_by_force(tmp_path: Path) -> None:
    source, output = write_story(tmp_path, "a.txt"), tmp_path / "pairs.tsv"
    output.write_text("mine", encoding="utf-8")
    result = CliRunner().invoke(app, ["harvest", str(source), "-o", str(output), "-w1"])
    assert isinstance(result.exception, Cod3sError)
    assert "--force" in result.exception.hint
    assert output.read_text(encoding="utf-8") == "mine"
    assert CliRunner().invoke(app, ["harvest", str(source), "-o", str(output), "-w1", "--force"]).exit_code == 0
    assert output.read_text(encoding="utf-8") != "mine"


def test_lone_surrogates_in_json_do_not_reach_the_file(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "The \\ud800 road was closed, so we walked home."}\n', encoding="utf-8")
    summary = harvest([source], tmp_path / "pairs.parquet")
    assert summary.dropped == {"markup": 1}


def cod3s(*arguments: str | Path, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cod3s", "harvest", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "a.txt"
    source.write_text("".join(f"The road {n} was closed, so we walked home {n}.\n\n" for n in range(3000)))
    out = tmp_path / "out"
    # A limit on the size of written files fails like a full disk does: in the middle of a write.
    process = cod3s(
        source, "-o", out / "pairs.parquet", "-w", "1",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
    )  # fmt: skip
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the operating system refused" in stderr
    assert "Traceback" not in stderr
    assert not list(out.iterdir())


@pytest.mark.parametrize(("number", "leftovers"), [(signal.SIGTERM, 0), (signal.SIGKILL, 1)])
def test_a_killed_run_leaves_no_half_written_file(number: int, leftovers: int, tmp_path: Path) -> None:
    process = cod3s("-", "-o", tmp_path / "pairs.parquet", "-w", "2", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(STORY * 6000)  # more than the pieces that may wait: the unfinished file is open by then
    process.stdin.flush()
    deadline = time.monotonic() + 30
    while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not (tmp_path / "pairs.parquet").exists()
    assert len(list(tmp_path.iterdir())) == leftovers  # kill -9 leaves the hidden unfinished file, nothing else


def test_the_command_prints_a_summary_that_adds_up(tmp_path: Path) -> None:
    source, output = write_story(tmp_path, "a.txt"), tmp_path / "pairs.parquet"
    result = CliRunner().invoke(app, ["harvest", str(source), "-o", str(output), "--workers", "1", "--json"])
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["matched"] == sum(record["kept"].values()) + sum(record["dropped"].values())
    assert (record["files"], record["bytes"], record["pairs"]) == (1, len(STORY.encode()), 3)
    table = CliRunner().invoke(app, ["harvest", str(source), "-o", str(output), "-w1", "--force"]).stdout
    assert "sentence-so" in table
    assert "= 3 kept +" in table
    assert "\n1 file |" in table
    two = CliRunner().invoke(app, ["harvest", str(source), str(source), "-o", str(output), "-w1", "--force"])
    assert "\n2 files |" in two.stdout


def test_standard_input_is_read_as_text(tmp_path: Path) -> None:
    output = tmp_path / "pairs.parquet"
    result = CliRunner().invoke(app, ["harvest", "-", "-o", str(output), "-w", "1"], input=STORY)
    assert result.exit_code == 0, result.output
    assert rows(output) == [(*pair, "-") for pair in PAIRS]


def test_a_harvest_without_pairs_says_so_and_prints_no_empty_tables(tmp_path: Path) -> None:
    for text, remark in (
        ("The sun rose. We ate.", "no cue such as"),
        ("I think so too.", "all 1 cues were dropped"),
    ):
        (tmp_path / "a.txt").write_text(text)
        done = CliRunner().invoke(
            app, ["harvest", str(tmp_path / "a.txt"), "-o", str(tmp_path / "p.tsv"), "-w1", "--force"]
        )
        assert done.exit_code == 0, done.output
        assert f"no pairs, because {remark}" in done.stderr
        assert "Pairs kept" not in done.stdout
        assert ("Cues dropped" in done.stdout) == ("so" in text)


def test_the_limits_of_words_must_fit_together(tmp_path: Path) -> None:
    arguments = ["a.txt", "-o", "b", "--min-words", "5", "--max-words", "4"]
    result = CliRunner().invoke(app, ["harvest", *arguments])
    assert isinstance(result.exception, Cod3sError)
    assert "--min-words 5 is more" in result.exception.message


def test_a_damaged_file_is_a_format_error(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError) as caught:
        harvest([bad_file(tmp_path, "latin1.txt")], tmp_path / "pairs.parquet")
    assert "--errors replace" in caught.value.hint
