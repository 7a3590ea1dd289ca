"""One line of log for each request, without what the user wrote: the route, the status and the time it took."""

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger("cod3s.web")


class RequestLog:
    """Logs when a response is over, or the client gone."""

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
            # The route's own path: one that a user made up, or a query, may hold a sentence.
            path = getattr(scope.get("route"), "path", "(no route)")
            spent = 1000 * (time.perf_counter() - start)
            _log.info("%s %s %s %.0f ms", scope["method"], path, status or "gone", spent)
