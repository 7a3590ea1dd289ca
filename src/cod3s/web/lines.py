"""A response of JSON lines, each sent when it is made. Steps of work in, lines out.

The place at the gate is taken before the first byte, so that a refusal still has a status of its own; what goes
wrong later is a line too.
"""

import json
import logging
from collections.abc import Iterator
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cod3s.errors import Cod3sError
from cod3s.web.errors import explain
from cod3s.web.gate import Gate, in_threads, while_connected

_log = logging.getLogger("cod3s.web")

Event = dict[str, Any]


class JsonLines(Response):
    """Sends each event that the work makes as one line of JSON."""

    media_type = "application/x-ndjson"

    def __init__(self, gate: Gate, events: Iterator[Event]) -> None:
        super().__init__()
        del self.headers["content-length"]  # not known before the end
        self._gate, self._events = gate, events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await while_connected(receive, lambda: self._send_all(send))

    async def _send_all(self, send: Send) -> None:
        started = False
        try:
            async with self._gate.place():
                async for event in in_threads(self._events):
                    if not started:
                        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                        started = True
                    await send(_line(event))
        except Exception as error:
            if not started:
                raise
            if not isinstance(error, Cod3sError):
                _log.error("a stream broke off", exc_info=error)
            await send(_line({"event": "error", **explain(error)}))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _line(event: Event) -> dict[str, Any]:
    body = json.dumps(event, ensure_ascii=False).encode() + b"\n"
    return {"type": "http.response.body", "body": body, "more_body": True}
