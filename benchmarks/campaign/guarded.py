"""Run cases in a process of their own: a crash, a hang or too much memory is a finding, not the end."""

import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError

HANG_SECONDS = 10  # of the processor: on a busy machine, the clock says little
STILL_SECONDS = 300  # for a process that waits and does nothing
MEMORY_BYTES = 1 << 30
_FORK = multiprocessing.get_context("fork")

Try = Callable[[int], str]
"""Tries the case of a number and returns what went wrong, or nothing."""


class Guarded:
    """A process that tries one case at a time; a new one takes its place when it dies or hangs."""

    def __init__(self, prepare: Callable[[], Try]) -> None:
        self._prepare = prepare
        self._process: Any = None
        self._pipe: Any = None
        self._finished: Any = _FORK.RawValue("i")  # cases of those that were sent last

    def __enter__(self) -> "Guarded":
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()

    def __call__(self, number: int) -> str:
        """What went wrong with a case, or nothing."""
        ((_, finding),) = self.try_all([number])
        return finding

    def try_all(self, numbers: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Each number, and what went wrong with its case, or nothing.

        The process gets all numbers at once: most cases take less time than a switch between two processes.
        """
        waiting = deque(numbers)
        while waiting:
            if self._process is None:
                self._start()
            findings, fault = self._try(list(waiting))
            for number in islice(waiting, self._finished.value):
                yield number, findings.get(number, "")
            for _ in range(self._finished.value):
                waiting.popleft()
            if waiting:
                self._stop()
                yield waiting.popleft(), fault

    def _try(self, numbers: list[int]) -> tuple[dict[int, str], str]:
        """The findings of finished cases, and what went wrong with the case after them if it did not finish."""
        findings: dict[int, str] = {}
        self._finished.value = 0
        try:
            self._pipe.send(numbers)
            while not (fault := self._hang()):
                if (message := self._pipe.recv()) is None:
                    break
                findings.update([message])
        except (EOFError, ConnectionError):
            self._process.join()
            fault = f"the process died ({_exit_name(self._process.exitcode)})"
        return findings, fault

    def _start(self) -> None:
        self._pipe, other_end = _FORK.Pipe()
        self._process = _FORK.Process(target=_serve, args=(other_end, self._prepare, self._finished), daemon=True)
        self._process.start()
        other_end.close()
        self._pipe.recv()  # prepared

    def _hang(self) -> str:
        """Wait for the next message; what is wrong if a case does not end in time."""
        before = -1
        while not self._pipe.poll(1.0):
            if self._finished.value != before:
                before, start, used = self._finished.value, time.monotonic(), _processor_seconds(self._process.pid)
            if _processor_seconds(self._process.pid) > used + HANG_SECONDS:
                return f"no result after {HANG_SECONDS} processor seconds"
            if time.monotonic() > start + STILL_SECONDS:
                return f"no result after {STILL_SECONDS} s"
        return ""

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def refused_or_done(call: Callable[[], object], *, must_refuse: bool = False) -> str:
    """Nothing if the call works or raises a Cod3sError with a message; otherwise what happened instead."""
    try:
        call()
    except Cod3sError as error:
        return "" if error.message else "an error without a message"
    except BaseException as error:  # a panic of a Rust library is no Exception
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}: {str(error)[:200]}"
    return "it was not refused" if must_refuse else ""


def _serve(pipe: Connection, prepare: Callable[[], Try], finished: Any) -> None:
    """Try the cases that come; send findings, and None after the last case."""
    attempt = prepare()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # native libraries complain about every damaged file
    pages = int(Path("/proc/self/statm").read_text().split()[5])  # data and stack
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    pipe.send("prepared")
    while True:
        try:
            numbers = pipe.recv()
        except EOFError:
            return
        for number in numbers:
            if finding := attempt(number):
                pipe.send((number, finding))
            finished.value += 1
        pipe.send(None)


def _processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _exit_name(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit {code}"
