"""Protect an application: security headers, no requests from foreign pages, bodies within limits."""

import logging
import time
from collections.abc import Sequence

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cod3s.web.address import Access
from cod3s.web.error_replies import RefusedError, error_response

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with responses: a browser runs, loads and shows nothing but what the server sent."""
BODY_SECONDS = 15.0  # a slower body would occupy the server for as long as its sender likes
_log = logging.getLogger("cod3s.web")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class SecurityHeaders:
    """Adds HEADERS to every response; a header that a route sets itself stays."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Guard:
    """Refuses foreign hosts and origins, bodies that are too long or too slow, and too many requests at once."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        access: Access,
        max_body: int,
        body_seconds: float = BODY_SECONDS,
        in_flight: int | None = None,
    ) -> None:
        self._app, self._access = app, access
        self._max_body, self._body_seconds, self._in_flight = max_body, body_seconds, in_flight
        self._running = 0  # changed only between awaits of the same event loop, so no lock is needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._running += 1
        try:
            try:
                self._check(scope)
                body = await read_body(receive, self._max_body, self._body_seconds)
            except RefusedError as error:
                await error_response(error)(scope, receive, send)
                return
            await self._app(scope, _replayed(body, receive), send)
        finally:
            self._running -= 1

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin", "")
        if not self._access.allows_host(host):
            raise RefusedError(
                403,
                f"this server does not answer to the host {host[:100]!r}",
                hint="open it at the address that it printed, or start it with --allow-host NAME",
            )
        if scope["method"] not in _SAFE_METHODS and not self._access.allows_origin(origin, host):
            raise RefusedError(
                403,
                f"pages from {origin[:100]!r} may not send requests to this server",
                hint="use the server's page; behind a proxy, start it with --allow-host NAME",
            )
        if self._in_flight is not None and self._running > self._in_flight:
            raise RefusedError(503, "the server is busy", hint="try again in a moment", retry_after=1)


async def read_body(receive: Receive, max_bytes: int, seconds: float) -> bytes:
    """The whole body, in however many parts it is sent; an error beyond the limits."""
    body, more = bytearray(), True
    try:
        with anyio.fail_after(seconds):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    break
                body += message.get("body", b"")
                if len(body) > max_bytes:
                    raise RefusedError(413, f"the body is larger than {max_bytes} bytes", hint="send less at once")
                more = message.get("more_body", False)
    except TimeoutError:
        raise RefusedError(408, "the body arrived too slowly", hint="send it again") from None
    return bytes(body)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that delivers the body first, and then whatever comes."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class RequestLog:
    """Logs the route, the status and the time of each request, but nothing that the user wrote."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def watch(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            # The route's pattern: a path that a user made up, or a query, may hold a sentence.
            path = getattr(scope.get("route"), "path", "(no route)")
            milliseconds = 1000 * (time.perf_counter() - start)
            _log.info("%s %s %s %.0f ms", scope["method"], path, status or "gone", milliseconds)


def protected(
    app: ASGIApp,
    access: Access,
    origins: Sequence[str] = (),
    *,
    max_body: int,
    body_seconds: float,
    in_flight: int | None = None,
) -> ASGIApp:
    """The application behind the guard, with security headers and a log; pages of `origins` may call it."""
    app = Guard(app, access=access, max_body=max_body, body_seconds=body_seconds, in_flight=in_flight)
    if origins:
        app = CORSMiddleware(
            app,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Content-Type", "Authorization"],
        )
    return RequestLog(SecurityHeaders(app))
