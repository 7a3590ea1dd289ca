"""Run cases in a process of their own: a crash, a hang or too much memory is a finding, not the end."""

import multiprocessing
import os
import resource
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from cod3s.errors import Cod3sError

HANG_SECONDS = 10
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

    def __enter__(self) -> "Guarded":
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop()

    def __call__(self, number: int) -> str:
        """What went wrong with a case, or nothing."""
        if self._process is None:
            self._pipe, other_end = _FORK.Pipe()
            self._process = _FORK.Process(target=_serve, args=(other_end, self._prepare), daemon=True)
            self._process.start()
            other_end.close()
            self._pipe.recv()  # prepared
        try:
            self._pipe.send(number)
            if self._pipe.poll(HANG_SECONDS):
                return str(self._pipe.recv())
            finding = f"no result after {HANG_SECONDS} s"
        except (EOFError, ConnectionError):
            self._process.join()
            finding = f"the process died ({_exit_name(self._process.exitcode)})"
        self._stop()
        return finding

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


def _serve(pipe: Connection, prepare: Callable[[], Try]) -> None:
    attempt = prepare()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # native libraries complain about every damaged file
    pages = int(Path("/proc/self/statm").read_text().split()[5])  # data and stack
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    pipe.send("prepared")
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            return
        pipe.send(attempt(number))


def _exit_name(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit {code}"
