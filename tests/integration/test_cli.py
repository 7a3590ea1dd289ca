"""The command line as a user meets it: its output and exit codes, in a process of its own where that matters."""

import fcntl
import gzip
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import cod3s
from cod3s.cli.output import print_table
from conftest import ROOT, Run

TEXTS = "It rained all night.\nThe river rose.\n\nThe bridge was closed.\nA dog barked.\n"
COMMANDS = [
    ["sign"],
    ["bins", "build"],
    ["bins", "stats"],
    ["bins", "show"],
    ["bins", "tree"],
    ["sts"],
    ["harvest"],
    ["prepare"],
    ["train"],
    ["bundle", "export"],
    ["bundle", "info"],
    ["bundle", "push"],
    ["evaluate"],
    ["sweep"],
    ["generate"],
]


def test_version(cod3s: Run) -> None:
    done = cod3s("--version")
    assert done.stdout.startswith("cod3s 0.")
    assert done.returncode == 0


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command: list[str], here: Run) -> None:
    done = here(*command, "--help")
    assert done.returncode == 0
    assert f"Example: cod3s {' '.join(command)}" in done.stdout


def test_shell_completion_is_there(here: Run) -> None:
    done = here("--help")
    assert "--install-completion" in done.stdout


def test_sign_prints_signatures_margins_and_pairs(cod3s: Run) -> None:
    done = cod3s("sign", "--encoder", "fast", "He lost his keys.", "he lost his keys", "Snow fell.", "--json")
    record = json.loads(done.stdout)
    assert record["encoder"] == "fast:all-MiniLM-L6-v2@53aa5117"
    assert record["bits"] == 16
    a, b, c = record["sentences"]
    assert a["signature"] == b["signature"] != c["signature"]
    assert len(a["signature"]) == 16
    assert a["margin"] > 0
    assert record["pairs"][0] == {"a": 0, "b": 1, "hamming": 0, "cosine": 1.0, "estimate": 1.0}
    assert {"a", "b", "hamming", "cosine", "estimate"} == set(record["pairs"][1])


def test_sign_prints_a_table_for_people_with_its_settings(cod3s: Run) -> None:
    done = cod3s("sign", "--encoder", "static", "He lost his keys.", "Snow fell.", "--bits", "8")
    assert "Snow fell." in done.stdout
    assert "encoder static:wordllama-l2-supercat-256 | code random | bits 8 | seed 1234" in done.stdout


def test_sign_reads_standard_input(cod3s: Run) -> None:
    done = cod3s("sign", "--encoder", "static", "--input", "-", "--json", stdin=TEXTS)
    assert [row["text"] for row in json.loads(done.stdout)["sentences"]] == TEXTS.replace(
        "\n\n", "\n"
    ).splitlines()


def test_a_dash_is_standard_input(cod3s: Run) -> None:
    done = cod3s("sign", "--encoder", "static", "A dog barked.", "-", "--json", stdin="It rained.\nIt poured.\n")
    assert [row["text"] for row in json.loads(done.stdout)["sentences"]] == [
        "A dog barked.",
        "It rained.",
        "It poured.",
    ]


def start_interruptible(folder: Path, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """The command line in a process of its own; modules in `folder` take the place of installed ones."""
    # Background shells ignore SIGINT, and so would what they start.
    start = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    start += "runpy.run_module('cod3s', run_name='__main__')"
    return subprocess.Popen(
        [sys.executable, "-c", start, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT / 'src'}"},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def interrupt_when(ready: Callable[[], bool], process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    """The exit code and what was printed by a process that gets Ctrl-C as soon as it is ready for it."""
    while not ready():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    return process.returncode, out, error


@pytest.mark.parametrize(
    ("slow", "arguments"),
    [
        ("typer", ("sign", "It rained.")),
        ("wordllama", ("sign", "It rained.", "--encoder", "static")),
        ("ctranslate2", ("generate", "effect", "it rained")),
        ("fastapi", ("serve", "--port", "0")),
    ],
)
def test_ctrl_c_ends_in_silence(slow: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    """While the command line is being imported as well as when it works: a module that sleeps stands for both."""
    (tmp_path / f"{slow}.py").write_text("import pathlib, time\npathlib.Path('here').touch()\ntime.sleep(60)\n")
    process = start_interruptible(tmp_path, *arguments)
    assert interrupt_when((tmp_path / "here").exists, process) == (130, b"", b"")


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (("select", "-", "-k", "1"), b"It rained.\n"),
        (("run", "effect"), b":k 2\n"),
        (("critic", "score", "-"), b"source\ttarget\nit rained\tthe road was wet\n"),
    ],
)
def test_ctrl_c_ends_in_silence_while_more_input_is_awaited(
    arguments: tuple[str, ...], first: bytes, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, first)
        process = start_interruptible(tmp_path, *arguments, stdin=reading)

        def was_read() -> bool:
            return fcntl.ioctl(reading, termios.FIONREAD, bytes(4)) == bytes(4)

        assert interrupt_when(was_read, process) == (130, b"", b"")
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("text", ["x" * 100_000, "🙂", "Ой, всё.", "tab\there\x07", "a\u2028b"])
def test_odd_text_gets_a_defined_signature(text: str, here: Run) -> None:
    done = here("sign", "--encoder", "static", text, "--json")
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["sentences"][0]["signature"]) == 16


@pytest.mark.parametrize(
    ("arguments", "message", "hint", "code"),
    [
        (["sign", "  "], "empty sentence", "visible", 1),
        (["sign"], "no sentences to sign", "cod3s sign", 2),
        (["sign", "a", "--encoder", "sttic"], "no encoder is called 'sttic'", "did you mean 'static'?", 2),
        (["sign", "a", "--encoder", "static", "--bits", "300"], "300 bits", "1 to 256", 1),
        (["sign", "--input", "nowhere.txt"], "no file at nowhere.txt", "spelling", 1),
        (["sign", "--input", "."], "is a folder", "", 1),
        (["sign", "a", "--encoder", "static", "--code", "nowhere"], "no file at nowhere/code.json", "", 1),
        (["sts", "nowhere.tsv"], "no file at nowhere.tsv", "", 1),
        (["bins", "show", "nowhere.sqlite", "01"], "no file at nowhere.sqlite", "", 1),
        (["bins", "stats", "nowhere.txt", "--bits", "4,x"], "whole numbers", "", 2),
    ],
)
def test_errors_say_what_was_found_and_the_way_out(
    arguments: list[str], message: str, hint: str, code: int, here: Run
) -> None:
    done = here(*arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert hint in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_debug_shows_the_traceback(here: Run) -> None:
    assert "Traceback" in here("--debug", "sign", " ").stderr


def test_wrong_usage_exits_with_2(here: Run) -> None:
    assert here("sign", "--no-such-option").returncode == 2
    assert here("bins", "show", "01").returncode == 2
    assert here("generate", "effect").returncode == 2
    assert here("generate", "effect", "it rained", "--search", "bean").returncode == 2
    assert here("generate", "efect", "it rained").returncode == 2
    assert here("bins", "stats", "nowhere.txt", "--bits", "4,x").returncode == 2
    assert here("sign", "--input", "nowhere.txt").returncode == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("bad.txt", b"caf\xe9 au lait\n", "not UTF-8"),
        ("cut.txt.gz", gzip.compress(TEXTS.encode() * 500)[:-20], "damaged gzip"),
        ("fake.txt.gz", b"plain text", "damaged gzip"),
        ("empty.txt", b"", "no sentences"),
    ],
)
def test_a_bad_file_is_a_clear_error_and_leaves_nothing(
    name: str, content: bytes, message: str, here: Run, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    done = here("bins", "build", name, "-o", "bins.sqlite", "--encoder", "static")
    assert done.returncode == 1
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_bins_from_build_to_tree(here: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text(TEXTS)
    built = here("bins", "build", "texts.txt", "-o", "bins.sqlite", "--encoder", "static", "--bits", "6", "--json")
    record = json.loads(built.stdout)
    assert (record["sentences"], record["bits"]) == (4, 6)
    nodes = [json.loads(line) for line in here("bins", "tree", "bins.sqlite", "--json").stdout.splitlines()]
    assert nodes[0]["signature"] == ""
    assert nodes[0]["count"] == 4
    signed = json.loads(here("sign", "The river rose.", "--encoder", "static", "--bits", "6", "--json").stdout)
    own = signed["sentences"][0]["signature"]
    shown = json.loads(here("bins", "show", "bins.sqlite", own, "--json").stdout)
    assert "The river rose." in shown["samples"]
    assert own in here("bins", "show", "bins.sqlite", own).stdout


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.tsv", 'id\ttext\n1\tIt "rained.\n2\tThe river rose.\n'),
        ("t.csv", 'id,text\n1,"It ""rained."\n2,The river rose.\n'),
        ("t.jsonl", '{"text": "It \\"rained."}\n\n{"text": "The river rose."}\n'),
    ],
)
def test_a_column_of_a_table_can_be_read(name: str, content: str, here: Run, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    done = here("sign", "--input", name, "--column", "text", "--encoder", "static", "--json")
    assert [row["text"] for row in json.loads(done.stdout)["sentences"]] == ['It "rained.', "The river rose."]
    wrong = here("sign", "--input", name, "--column", "txt", "--encoder", "static")
    assert wrong.returncode == 1
    assert "txt" in wrong.stderr


def test_statistics_and_sts_print_their_settings(here: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text(TEXTS)
    (tmp_path / "sts.csv").write_text(
        '"It rained.","Rain fell.",4.5\n"A cat.","A car.",1\n"x","y",oops\n"Go.","Go!",5\n'
    )
    stats = here("bins", "stats", "texts.txt", "--bits", "2,4", "-e", "static", "--sts", "sts.csv")
    assert "encoder static:wordllama-l2-supercat-256 | code random | seed 1234 | sentences 4" in stats.stdout
    assert "line 3: left out" in stats.stderr
    sts = here("sts", "sts.csv", "-e", "static", "--bits", "4,8", "--seeds", "2", "--plot", "rho.png", "--json")
    assert "line 3: left out, 'oops' is not a score" in sts.stderr
    record = json.loads(sts.stdout)
    assert record["settings"]["rejected"] == 1
    assert [row["code"] for row in record["rows"]] == ["cosine", "random", "random"]
    assert set(record["rows"][0]) >= {"encoder", "code", "bits", "rho", "sd"}
    assert (tmp_path / "rho.png").is_file()


def test_a_fitted_code_signs_and_knows_its_encoder(here: Run, tmp_path: Path) -> None:
    encoder = cod3s.load_encoder("static")
    vectors = encoder.encode([f"Sentence {n} about thing {n % 7}." for n in range(60)])
    cod3s.itq_code(vectors, 8).save(tmp_path / "code", encoder.id)
    signed = json.loads(here("sign", "Sentence 3.", "-e", "static", "--code", "code", "--json").stdout)
    assert (signed["code"], signed["bits"]) == ("itq", 8)
    fewer = here("sign", "Sentence 3.", "-e", "static", "--code", "code", "--bits", "4")
    assert (fewer.returncode, "has 8 bits, not 4" in fewer.stderr) == (2, True)
    other = here("sign", "Sentence 3.", "-e", "fast", "--code", "code")
    assert other.returncode == 1
    assert "was fitted for static" in other.stderr


def test_a_full_disk_is_a_clear_error_and_leaves_no_half_file(cod3s: Run, tmp_path: Path) -> None:
    """A file-size limit stands in for a full disk: the write fails in the middle in the same way."""
    (tmp_path / "texts.txt").write_text("\n".join(f"Sentence number {n}." for n in range(3000)))
    done = cod3s("bins", "build", "texts.txt", "-o", "bins.sqlite", "-e", "static", max_file_bytes=40_000)
    assert done.returncode == 1
    assert "check that" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["texts.txt"]


def test_a_dash_is_standard_input_wherever_text_is_taken(here: Run, tmp_path: Path) -> None:
    signed = json.loads(here("sign", "-", "--json", "-e", "static", stdin="It rained.\nWe slept.\n").stdout)
    assert [row["text"] for row in signed["sentences"]] == ["It rained.", "We slept."]
    table = "id\ttext\n1\tIt rained.\n2\tWe slept.\n"
    signed = json.loads(here("sign", "-", "--column", "text", "--json", "-e", "static", stdin=table).stdout)
    assert [row["text"] for row in signed["sentences"]] == ["It rained.", "We slept."]
    done = here("bins", "build", "-", "-o", "b.sqlite", "-e", "static", stdin="It rained.\nWe slept.\nHe ran.\n")
    assert done.returncode == 0, done.stderr


def test_outputs_are_replaced_only_by_force(here: Run, tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("It rained.\nWe slept.\nHe ran.\n", encoding="utf-8")
    command = ["bins", "build", "s.txt", "-o", "b.sqlite", "-e", "static"]
    assert here(*command).returncode == 0
    again = here(*command)
    assert again.returncode == 1
    assert "already exists" in again.stderr
    assert "--force" in again.stderr
    assert here(*command, "--force").returncode == 0


def test_a_table_with_more_columns_than_the_terminal_holds_breaks_no_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["system", *(f"figure-number-{number}" for number in range(1, 7))]
    rows = [["s2s-rs+cod3s", *(f"{number}.123456*" for number in range(1, 7))]]
    monkeypatch.setenv("COLUMNS", "80")
    print_table("Wide", names, rows, "settings")
    narrow = capsys.readouterr().out
    assert max(map(len, narrow.splitlines())) <= 80
    assert all(text in narrow.split() for text in (*names, *rows[0]))
    monkeypatch.setenv("COLUMNS", "160")
    print_table("Wide", names, rows, "settings")
    assert any(all(name in line for name in names) for line in capsys.readouterr().out.splitlines())


def test_sts_fits_eighty_columns(here: Run, tmp_path: Path) -> None:
    (tmp_path / "sts.csv").write_text('"It rained.","Rain fell.",4.5\n"A cat.","A car.",1\n"Go.","Go!",5\n')
    lines = here("sts", "sts.csv", "-e", "static", "--seeds", "2", COLUMNS="80").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[2] for line in lines if " random " in line] == ["4", "8", "16", "32", "64", "128", "256"]
