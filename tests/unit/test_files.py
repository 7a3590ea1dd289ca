"""Folders take their places whole, spare what is not theirs, and leave nothing behind."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cod3s.errors import Cod3sError, FileFormatError
from cod3s.io.disk import open_text, read_json_lines, replaced_folder, write_text
from conftest import Run


def write(folder: Path, text: str, mark: str = "") -> None:
    with replaced_folder(folder, mark) as partial:
        (partial / "notes.txt").write_text(text)


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def test_a_folder_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path / "own", "old", "notes.txt")
    write(tmp_path / "own", "new", "notes.txt")
    assert (tmp_path / "own" / "notes.txt").read_text() == "new"
    assert left_over(tmp_path) == []


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    write(tmp_path / "own", "new", "notes.txt")
    assert (tmp_path / "own" / "notes.txt").read_text() == "new"


def test_a_folder_that_holds_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").write_text("ten years")
    with pytest.raises(Cod3sError, match=r"contains other files \(and no notes.txt"):
        write(tmp_path / "own", "new", "notes.txt")
    assert (tmp_path / "own" / "thesis.txt").read_text() == "ten years"
    (tmp_path / "file").write_text("x")
    with pytest.raises(Cod3sError, match="is a file"):
        write(tmp_path / "file", "new", "notes.txt")


def test_a_block_that_fails_leaves_the_earlier_folder(tmp_path: Path) -> None:
    write(tmp_path / "own", "old")

    def write_half() -> None:
        with replaced_folder(tmp_path / "own") as partial:
            (partial / "notes.txt").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert (tmp_path / "own" / "notes.txt").read_text() == "old"
    assert left_over(tmp_path) == []


def test_the_folder_one_stands_in_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "own", "old", "notes.txt")
    monkeypatch.chdir(tmp_path / "own")
    with pytest.raises(Cod3sError, match="is the current folder"):
        write(Path(), "new", "notes.txt")
    assert (tmp_path / "own" / "notes.txt").read_text() == "old"


def test_two_that_write_the_same_folder_at_once_both_succeed(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: write(tmp_path / "own", str(number)), range(200)))
    assert (tmp_path / "own" / "notes.txt").read_text().isdigit()
    assert left_over(tmp_path) == []


def test_what_is_no_ordinary_file_is_left_as_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(Cod3sError, match="ordinary"):
            write_text(tmp_path / name, "new")
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_bins_are_not_written_over_their_sentences(here: Run, tmp_path: Path) -> None:
    (tmp_path / "same.txt").write_text("it rained\n")
    done = here("bins", "build", "same.txt", "-o", "same.txt", "-e", "static")
    assert "is also an input" in done.stderr
    assert (tmp_path / "same.txt").read_text() == "it rained\n"


def test_every_line_end_is_a_newline(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_bytes("\ufeffone\r\ntwo\rthree\n".encode())
    with open_text(tmp_path / "lines.txt") as stream:
        assert list(stream) == ["one\n", "two\n", "three\n"]


def test_a_line_that_cannot_be_parsed_is_explained_in_plain_words(tmp_path: Path) -> None:
    for line, reason in (("rain", "not valid JSON: Expecting value"), ("{}", "the field 'text' is missing")):
        (tmp_path / "a.jsonl").write_text(f'{{"text": "a"}}\n{line}\n')
        with pytest.raises(FileFormatError) as raised:
            list(read_json_lines(tmp_path / "a.jsonl", lambda record: record["text"], "a text"))
        assert raised.value.message == f"{tmp_path / 'a.jsonl'}, line 2: not a text ({reason})"
