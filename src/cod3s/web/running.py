"""Run an application until it is told to stop, within bounds of memory and of the time that stopping takes."""

import ctypes
import logging
import os
import platform
import socket
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

import uvicorn
from starlette.types import ASGIApp

GRACE_SECONDS = 5  # for requests that are being answered when the server is told to stop
GIVE_UP_SECONDS = 10  # after that signal; a thread in the middle of a computation cannot be cancelled
KEEP_ALIVE_SECONDS = 75  # for connections without a request: longer than most proxies and clients keep them
TRIM_SECONDS = 10  # a trim takes a few milliseconds
_M_ARENA_MAX = -8  # in malloc.h
_WARNING_SECONDS = 1  # for a warning that nobody may be reading
_log = logging.getLogger(__name__)


def bound_heaps() -> None:
    """Limit what the C library (glibc) keeps of the memory that was freed. Call it before threads start.

    It has up to eight heaps per core for threads, and each would grow to the largest request that ever ran in it.
    So there is one heap per core, unless the variable MALLOC_ARENA_MAX says otherwise, and free memory goes back
    to the system every TRIM_SECONDS. Giving it back at once would cost half as much processor time again.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    if "MALLOC_ARENA_MAX" not in os.environ:
        libc.mallopt(_M_ARENA_MAX, max(2, os.cpu_count() or 1))
    threading.Thread(target=_trim_forever, args=(libc,), daemon=True).start()


def _trim_forever(libc: ctypes.CDLL) -> None:
    while True:
        time.sleep(TRIM_SECONDS)
        libc.malloc_trim(0)


def run_until_stopped(app: ASGIApp, listener: socket.socket, **options: Any) -> None:
    """Serve `app` on `listener` until ctrl-C; `options` are further settings of uvicorn.

    No access log: it would record what users do. No server header: it only helps attackers. The process ends
    GIVE_UP_SECONDS after ctrl-C at the latest, whatever comes after this call; end it with `end_process`.
    """
    config = uvicorn.Config(
        app,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        **options,
    )
    with suppress(KeyboardInterrupt):  # uvicorn shuts down first and then raises it again
        _BoundedServer(config).run(sockets=[listener])


def end_process() -> NoReturn:
    """End this process without waiting for its threads and without freeing its memory piece by piece.

    Freeing takes half a second of a core, which may be half a minute on a busy machine, and nothing can stop it:
    by then, Python has halted all other threads.
    """
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


class _BoundedServer(uvicorn.Server):
    """Ends the process if an orderly shutdown takes too long.

    Python waits for its threads before it ends, and a step of decoding may take a minute on a busy machine.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = threading.Event()
        # Started now, because a signal may arrive while the lock that starting a thread needs is taken.
        threading.Thread(target=self._give_up_in_time, daemon=True).start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            self._stopping.set()
        super().handle_exit(sig, frame)

    def _give_up_in_time(self) -> None:
        self._stopping.wait()
        time.sleep(GIVE_UP_SECONDS)
        warning = threading.Thread(target=_warn, daemon=True)  # it may wait for a full pipe forever
        warning.start()
        warning.join(_WARNING_SECONDS)
        os._exit(0)


def _warn() -> None:
    _log.warning("stopped with requests unanswered after %s seconds", GIVE_UP_SECONDS)
