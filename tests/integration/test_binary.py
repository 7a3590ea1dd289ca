"""A binary file that is given as text is named as what it is."""

import pickle
import re
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cod3s.cli.main import app
from cod3s.errors import FileFormatError
from cod3s.io.disk import open_text
from cod3s.io.tables import read_sentences
from conftest import Run
from tiny_bundle import TinyBundle


def write_zip(*members: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for member in members:
                archive.writestr(member, "<x/>" * 200)

    return write


def write_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE sentences (text TEXT)")


def write_bytes(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


CASES = [
    ("a.xlsx", write_zip("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"), "an Excel workbook"),
    ("a.docx", write_zip("[Content_Types].xml", "word/document.xml"), "a Word document"),
    ("a.zip", write_zip("notes.txt"), "a zip archive"),
    ("a.db", write_database, "an SQLite database"),
    ("a.pdf", write_bytes(b"%PDF-1.7\n"), "a PDF document"),
    ("a.png", write_bytes(b"\x89PNG\r\n\x1a\n\0\0"), "a PNG image"),
    ("a.txt", write_bytes(b"\x1f\x8b\x08"), "a gzip file"),
    ("a.txt", write_bytes("It rained.".encode("utf-16")), "UTF-16 text"),
    ("a.txt", write_bytes(b"PAR1"), "a Parquet file"),
    ("a.mp3", write_bytes(b"ID3\x04\0\0\0\0\x01\x0f"), "an MP3 sound file"),
    ("b.mp3", write_bytes(b"\xff\xfb\x90\x64"), "an MP3 sound file"),
    ("a.wav", write_bytes(b"RIFF\x24\x08\0\0WAVEfmt "), "a WAV, AVI or WebP file"),
    ("a.exe", write_bytes(b"MZ\x90\0\x03\0"), "a Windows program"),
    ("a.pickle", lambda path: path.write_bytes(pickle.dumps({"a": 1})), "a Python pickle"),
    ("a.rtf", write_bytes(rb"{\rtf1\ansi It rained.}"), "an RTF document"),
    ("a.safetensors", write_bytes(b"\x3a\0\0\0\0\0\0\0" + b'{"w":{"dtype":"F32"}}'), "a binary file"),
]


def test_a_binary_file_is_named_in_the_error(tmp_path: Path) -> None:
    for name, write, kind in CASES:
        (tmp_path / name).unlink(missing_ok=True)
        write(tmp_path / name)
        with pytest.raises(FileFormatError, match=f"{name} is {kind}.*, but text is needed") as raised:
            list(read_sentences(tmp_path / name))
        assert raised.value.hint


def test_bytes_that_are_not_utf8_may_be_replaced_but_not_those_of_a_document(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"%PDF-1.7\n\xff")
    with (
        pytest.raises(FileFormatError, match="a PDF document"),
        open_text(tmp_path / "a.txt", "replace") as stream,
    ):
        stream.read()


def test_text_may_start_with_the_letters_of_a_format(tmp_path: Path) -> None:
    texts = ["MZ was here.", "RIFF is a format.", "ID3 tags name a song."]
    for text in texts:
        (tmp_path / "a.txt").write_text(text, encoding="utf-8")
        assert list(read_sentences(tmp_path / "a.txt")) == [text]


@pytest.mark.parametrize(
    "command",
    [
        ("run", "--bundle", "BUNDLE"),
        ("diversify", "-", "--server", "http://127.0.0.1:9", "--model", "m"),
        ("select", "-"),
        ("study", "new", "-", "-o", "study"),
        ("evaluate", "-", "-o", "report"),
    ],
    ids=lambda command: command[0],
)
def test_a_binary_file_in_a_pipe_is_named_too(
    command: tuple[str, ...], tiny_bundle: TinyBundle, tmp_path: Path
) -> None:
    write_zip("[Content_Types].xml", "xl/workbook.xml")(tmp_path / "sales.xlsx")
    arguments = [str(tiny_bundle.small) if part == "BUNDLE" else part for part in command]
    with (tmp_path / "sales.xlsx").open("rb") as piped:
        done = subprocess.run(
            [sys.executable, "-m", "cod3s", *arguments],
            stdin=piped, capture_output=True, encoding="utf-8", cwd=tmp_path, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("cod3s: standard input is an Excel workbook (.xlsx), but text is needed")


def test_the_command_says_what_the_file_is(cod3s: Run, tmp_path: Path) -> None:
    write_database(tmp_path / "a.txt")
    done = cod3s("bins", "stats", "a.txt", "--encoder", "static")
    assert done.returncode == 1
    assert "a.txt is an SQLite database, but text is needed" in done.stderr


COMMANDS = [
    ("sign", "--input", "FILE", "--encoder", "static"),
    ("select", "FILE", "-k", "1"),
    ("generate", "effect", "--input", "FILE", "--bundle", "BUNDLE"),
    ("bins", "build", "FILE", "-o", "OUTPUT", "--encoder", "static"),
    ("bins", "stats", "FILE", "--encoder", "static"),
    ("sts", "FILE", "--encoder", "static"),
    ("harvest", "FILE", "-o", "OUTPUT.tsv", "--workers", "1"),
    ("prepare", "FILE", "-o", "OUTPUT", "--encoder", "none"),
    ("evaluate", "FILE", "-o", "OUTPUT", "--bundle", "BUNDLE", "--encoders", "bundle"),
    ("evaluate", "--from", "FILE", "-o", "OUTPUT", "--encoders", "static"),
    ("sweep", "FILE", "-o", "OUTPUT", "--bundle", "BUNDLE", "--encoders", "bundle"),
    ("critic", "score", "FILE", "--relation", "effect"),
    ("study", "new", "FILE", "-o", "OUTPUT"),
]


def test_every_command_that_reads_text_says_what_the_file_is(tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    write_zip("[Content_Types].xml", "xl/workbook.xml")(tmp_path / "sales.xlsx")
    names = {"FILE": tmp_path / "sales.xlsx", "BUNDLE": tiny_bundle.small, "OUTPUT": tmp_path / "out"}
    names["OUTPUT.tsv"] = tmp_path / "out.tsv"
    for command in COMMANDS:
        result = CliRunner().invoke(app, [str(names.get(part, part)) for part in command])
        assert isinstance(result.exception, FileFormatError), (command, result.output)
        assert re.search(r"sales\.xlsx is (an Excel workbook|a spreadsheet)", result.exception.message), command
        assert "save it as" in result.exception.hint
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "out.tsv").exists()


def test_export_spares_a_folder_of_another_kind(here: Run, tiny_bundle: TinyBundle, tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(tiny_bundle.run)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("ten years")
    done = here("bundle", "export", "run", "-o", "mine")
    assert done.returncode != 0
    assert "no bundle.json" in done.stderr.replace("\n", " ")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "ten years"
