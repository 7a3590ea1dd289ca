"""`cod3s run`: a conversation by lines, typed or piped."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from select import select
from time import sleep

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


def test_more_writes_other_answers_and_verbose_shows_their_bins(talk) -> None:
    done = talk(":more", SOURCES[0], ":verbose", ":more", ":verbose", arguments=("effect", "-k", "2"))
    assert ":more needs a sentence before it" in done.stderr
    lines = done.stdout.splitlines()
    answers = [line for line in lines if not line.startswith("     ")]
    assert [line.split()[0] for line in answers] == ["1", "2", "3", "4"]
    assert len({line[5:] for line in answers}) == 4
    details = [line for line in lines if line.startswith("     ")]
    assert len(details) == 2
    assert all("score " in line and " | " in line for line in details)


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


def test_very_many_answers_are_announced(talk) -> None:
    done = talk(":k 200", arguments=("effect", "-k", "1000"))
    assert "1000 answers per source (1000 is the most) take about 3.3 minutes" in done.stderr
    assert "200 answers per source (1000 is the most) take about 0.7 minutes" in done.stderr


class Terminal:
    """The command line on a pseudo-terminal, which shows what it prints and types for it."""

    def __init__(self, *arguments: str, **streams: int) -> None:
        self._master, slave = os.openpty()
        self.shown = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cod3s", *arguments],
            **{"stdin": slave, "stdout": slave, "stderr": slave, **streams},
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(slave)

    def type_after(self, awaited: str, line: str, end: str = "\n") -> None:
        """Type a line as soon as the terminal shows `awaited` at the end."""
        self.read_until(awaited)
        os.write(self._master, f"{line}{end}".encode())
        self.shown += line  # so that the same prompt is awaited again

    def read_until(self, awaited: str) -> None:
        """Read until the terminal shows `awaited` at the end."""
        while not self.shown.endswith(awaited):
            assert self._read(), self.shown

    def finish(self) -> int:
        """The exit code; all that was shown is in `shown`."""
        while self._read():
            pass
        os.close(self._master)
        return self.process.wait(timeout=60)

    def _read(self) -> bool:
        assert select([self._master], [], [], 120)[0], f"nothing more came after {self.shown}"
        try:
            self.shown += (more := os.read(self._master, 65_536)).decode()
        except OSError:  # the other end was closed
            return False
        return bool(more)


def test_on_a_terminal_run_prompts_for_sentences_and_commands(tiny_bundle: TinyBundle) -> None:
    terminal = Terminal("run", "effect", "-k", "2", "--bundle", str(tiny_bundle.small))
    terminal.type_after("effect> ", ":cause")
    terminal.type_after("cause> ", ":k many")
    terminal.type_after("cause> ", ":k 1")
    terminal.type_after("cause> ", SOURCES[0])
    terminal.type_after("cause> ", ":quit")
    assert terminal.finish() == 0
    assert "type a sentence to get its effects; :help lists the commands" in terminal.shown
    assert ":k takes a number from 1 to 1000, not 'many'" in terminal.shown
    assert "\n  1  " in terminal.shown.replace("\x1b[2K", "\n")
    assert "  2  " not in terminal.shown
    stages = ["opening the model …", "choosing bins …", "writing in 1 bin …", "choosing answers …"]
    assert all(stage in terminal.shown for stage in stages)
    assert terminal.shown.count("\x1b[?25l") == terminal.shown.count("\x1b[?25h")  # the cursor is there again


def test_ctrl_c_clears_the_line_that_is_typed(tiny_bundle: TinyBundle) -> None:
    terminal = Terminal("run", "effect", "-k", "1", "--bundle", str(tiny_bundle.small))
    terminal.type_after("effect> ", "it rai", end="")
    # as typed, and as the line editor echoes it
    terminal.read_until("it rai" * 2)
    sleep(1)  # Python's line editor misses a signal in the moment before it waits for the next key
    terminal.process.send_signal(signal.SIGINT)
    terminal.type_after("effect> ", ":quit")
    assert terminal.finish() == 0
    assert "  1  " not in terminal.shown


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["plain", "json"])
def test_on_a_terminal_generate_shows_its_stages_and_answers_while_they_are_made(
    more: tuple[str, ...], tiny_bundle: TinyBundle
) -> None:
    """What is shown in between goes to stderr, here a terminal; stdout has only the result."""
    options = ("-k", "3", "--bins-per-answer", "2", "--bundle", str(tiny_bundle.small))
    terminal = Terminal("generate", "effect", SOURCES[0], *options, *more, stdout=subprocess.PIPE)
    assert terminal.finish() == 0
    assert terminal.process.stdout
    result = terminal.process.stdout.read().decode()
    events = ["opening the model …", "choosing bins …", "writing in 6 bins …", "choosing answers …", "   1   "]
    places = [terminal.shown.find(event) for event in events]
    assert -1 not in places
    assert places == sorted(places)
    assert "0/1" not in terminal.shown  # a bar that jumps from nothing to all
    assert result.startswith('{"source"') if more else len(result.splitlines()) == 3
