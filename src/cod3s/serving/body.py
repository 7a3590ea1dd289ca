"""The body of a request, read whole within limits: so many bytes, in so many seconds."""

import anyio
from starlette.types import Receive

SECONDS = 15.0  # a body that comes slower would hold its place for as long as its sender likes


class TooManyBytesError(Exception):
    """A body of more bytes than are read."""


async def read_body(receive: Receive, most: int, seconds: float = SECONDS) -> bytes:
    """The whole body, however it is sent; TooManyBytesError if it is too long, TimeoutError when it is late."""
    body, more = bytearray(), True
    with anyio.fail_after(seconds):
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                break
            body += message.get("body", b"")
            if len(body) > most:
                raise TooManyBytesError
            more = message.get("more_body", False)
    return bytes(body)
