"""What stands between the network and the pages: limits on bodies and on requests in flight.

Plain ASGI; knows nothing about studies.
"""

import json
import time
from collections import deque
from collections.abc import Callable
from threading import Lock

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cod3s.serving.body import SECONDS, TooManyBytesError, read_body
from cod3s.serving.refusal import error_body


class Throttle:
    """Lets so many through in a minute, in all; safe to share between threads."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._passed: deque[float] = deque()
        self._turn = Lock()

    def passes(self) -> bool:
        """Whether one more may pass now; if so, it is counted."""
        with self._turn:
            now = self._clock()
            while self._passed and self._passed[0] <= now - 60:
                self._passed.popleft()
            if len(self._passed) >= self._per_minute:
                return False
            self._passed.append(now)
            return True


class Guard:
    """Wraps an app: refuses bodies over `max_body` bytes and more than `in_flight` requests."""

    def __init__(self, app: ASGIApp, *, max_body: int, in_flight: int, body_seconds: float = SECONDS) -> None:
        self._app, self._max_body, self._in_flight, self._body_seconds = app, max_body, in_flight, body_seconds
        self._now = 0  # changed only between awaits of one event loop, so no lock is needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._now >= self._in_flight:
            await _refuse(send, 503, "the server is busy", "try again in a moment", retry=True)
            return
        self._now += 1
        try:
            try:
                body = await read_body(receive, self._max_body, self._body_seconds)
            except TimeoutError:
                await _refuse(send, 408, "the request came too slowly", "send it again")
                return
            except TooManyBytesError:
                await _refuse(send, 413, f"the request has more than {self._max_body} bytes", "send less")
                return
            await self._app(scope, _replayed(body, receive), send)
        finally:
            self._now -= 1


def _replayed(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _refuse(send: Send, status: int, message: str, hint: str, *, retry: bool = False) -> None:
    body = json.dumps(error_body(message, hint)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if retry:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
