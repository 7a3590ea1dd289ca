"""`cod3s run`: a conversation by lines, typed or piped."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import Run
from tiny_bundle import SOURCES, TinyBundle


@pytest.fixture
def talk(here: Run, tiny_bundle: TinyBundle):
    def say(*lines: str, arguments: tuple[str, ...] = ("effect", "-k", "3")):
        return here("run", *arguments, "--bundle", str(tiny_bundle.small), stdin="\n".join(lines) + "\n")

    return say


def test_each_line_is_answered_and_nothing_else_is_printed(talk) -> None:
    done = talk(SOURCES[0], "", SOURCES[1])
    assert done.returncode == 0
    numbers = [line.split()[0] for line in done.stdout.splitlines()]
    assert numbers[0] == "1"
    assert numbers.count("1") == 2
    assert len(numbers) <= 6


def test_commands_change_relation_number_and_bin(talk) -> None:
    done = talk(":k 1", ":cause", SOURCES[0], ":like the pilot slept", SOURCES[0], ":like", ":quit", SOURCES[1])
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2  # nothing is answered after :quit


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (":k many", ":k takes a number from 1 to 1000, not 'many'"),
        (":k 0", ":k takes a number"),
        (":efect", "no relation 'efect'"),
        (":help", ":like SENTENCE"),
        ("x" * 200_000, "characters"),
    ],
)
def test_a_slip_is_explained_and_the_conversation_goes_on(line: str, said: str, talk) -> None:
    done = talk(line, SOURCES[0])
    assert said in done.stderr
    assert done.returncode == 0
    assert done.stdout.startswith("  1  ")


def test_a_line_is_answered_while_the_pipe_stays_open(tiny_bundle: TinyBundle) -> None:
    command = [sys.executable, "-m", "cod3s", "run", "effect", "-k", "1", "--bundle", str(tiny_bundle.small)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(f"{SOURCES[0]}\n")
        running.stdin.flush()
        answer = ThreadPoolExecutor(1).submit(running.stdout.readline)
        try:
            assert answer.result(timeout=120).startswith("  1  ")
        finally:
            running.kill()


def test_an_unknown_relation_ends_with_two(talk) -> None:
    done = talk(SOURCES[0], arguments=("efect",))
    assert done.returncode == 2
    assert "did you mean 'effect'?" in done.stderr


def test_on_a_terminal_generate_shows_answers_while_they_are_made(tiny_bundle: TinyBundle) -> None:
    """What is shown in between goes to stderr, here a pseudo-terminal; stdout has only the table."""
    master, slave = os.openpty()
    command = [sys.executable, "-m", "cod3s", "generate", "effect", SOURCES[0], "-k", "3"]
    done = subprocess.run(
        [*command, "--bundle", str(tiny_bundle.small)], stdout=subprocess.PIPE, stderr=slave, check=True
    )
    os.close(slave)
    shown = os.read(master, 65_536).decode()
    os.close(master)
    assert "choosing bins" in shown
    assert "   1   " in shown
    assert done.stdout.decode().startswith(f"effect of: {SOURCES[0]}")
