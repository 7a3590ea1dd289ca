"""Run an application until it is told to stop, and then stop within a stated time."""

import logging
import os
import socket
import threading
from contextlib import suppress
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

GRACE_SECONDS = 5  # for requests that are being answered when the server is told to stop
GIVE_UP_SECONDS = 10  # after that signal; a thread in the middle of a computation cannot be cancelled
_log = logging.getLogger(__name__)


def run_until_stopped(app: ASGIApp, listener: socket.socket, **options: Any) -> None:
    """Serve `app` on `listener` until ctrl-C; `options` are further settings of uvicorn.

    No access log: it would record what users do. No server header: it only helps attackers.
    """
    config = uvicorn.Config(
        app, access_log=False, server_header=False, timeout_graceful_shutdown=GRACE_SECONDS, **options
    )
    with suppress(KeyboardInterrupt):  # uvicorn shuts down first and then raises it again
        _BoundedServer(config).run(sockets=[listener])


class _BoundedServer(uvicorn.Server):
    """Ends the process when an orderly shutdown takes too long.

    Python waits for its threads before it ends, and a step of decoding may take a minute on a busy machine.
    """

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            timer = threading.Timer(GIVE_UP_SECONDS, _give_up)
            timer.daemon = True
            timer.start()
        super().handle_exit(sig, frame)


def _give_up() -> None:
    _log.warning("stopped with requests unanswered after %s seconds", GIVE_UP_SECONDS)
    os._exit(0)
