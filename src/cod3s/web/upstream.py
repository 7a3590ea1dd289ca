"""The server that writes: requests go to it with the client's headers, and its errors come back unchanged."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.responses import Response

from cod3s.errors import UsageError, require
from cod3s.web.error_replies import RefusedError
from cod3s.web.guard import HEADERS
from cod3s.web.limits import Limits

CONNECT_SECONDS = 10.0
_LEFT_OUT = ("host", "content-length", "connection", "transfer-encoding", "keep-alive", "upgrade", "te", "expect")
_OF_BROWSERS = ("cookie", "origin", "referer", "accept-encoding")
_RETURNED = re.compile(r"content-type$|content-encoding$|retry-after|openai-|x-")


class UpstreamError(RefusedError):
    """What went wrong with the upstream; `reply` is its own answer, if it gave one that clients should get."""

    final = True  # the client decides whether to ask again

    def __init__(self, status: int, message: str, hint: str = "", *, reply: Response | None = None) -> None:
        super().__init__(status, message, hint)
        self.reply = reply


class Upstream:
    """An OpenAI-compatible server at a fixed address. `key` replaces the key that clients send."""

    def __init__(self, url: str, limits: Limits, key: str | None = None) -> None:
        self._httpx = require("httpx2", "llm")
        self.base = _base(url)
        self._limits, self._key = limits, key
        timeout = self._httpx.Timeout(limits.seconds, connect=CONNECT_SECONDS)
        pool = self._httpx.Limits(max_connections=None, max_keepalive_connections=limits.at_once)
        self._client = self._httpx.AsyncClient(timeout=timeout, limits=pool, follow_redirects=False)

    def headers_for(self, headers: Mapping[str, str]) -> dict[str, str]:
        """A client's headers as the upstream gets them."""
        kept = {name: text for name, text in headers.items() if name not in (*_LEFT_OUT, *_OF_BROWSERS)}
        if self._key is None:
            return kept
        without = {
            name: text for name, text in kept.items() if name not in ("authorization", "api-key", "x-api-key")
        }
        return without | ({"authorization": f"Bearer {self._key}"} if self._key else {})

    @asynccontextmanager
    async def open(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes = b""
    ) -> AsyncIterator[Any]:
        """The reply as it comes; also errors while it is read are UpstreamErrors."""
        httpx = self._httpx
        try:
            async with self._client.stream(method, self.base + path, headers=headers, content=content) as reply:
                yield reply
        except httpx.TimeoutException:
            raise UpstreamError(504, "the upstream did not answer in time") from None
        except httpx.HTTPError as error:
            message = f"the upstream did not answer: {error or type(error).__name__}"
            raise UpstreamError(502, message, "check that it is running, then try again") from None

    async def ask(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
        """The text of the reply to a body of JSON; any status but success is an UpstreamError with that reply."""
        content, limit = bytearray(), self._limits.reply
        async with self.open("POST", path, headers, json.dumps(body).encode()) as reply:
            async for chunk in reply.aiter_bytes():
                content += chunk
                if len(content) > limit:
                    raise UpstreamError(502, f"the upstream's reply is larger than {limit} bytes")
        if not reply.is_success:
            kept = {name: text for name, text in returned_headers(reply).items() if name != "content-encoding"}
            refused = Response(bytes(content), reply.status_code, kept)
            raise UpstreamError(502, f"the upstream answered {reply.status_code}", reply=refused)
        return content.decode("utf-8", "replace")

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()


def returned_headers(reply: Any) -> dict[str, str]:
    """The headers of a reply that clients get; those that keep a browser safe are this server's."""
    ours = {name.lower() for name in HEADERS}
    return {name: text for name, text in reply.headers.items() if _RETURNED.match(name) and name not in ours}


def _base(url: str) -> str:
    """The address up to /chat/completions, usually ending in /v1, which is added to a bare host."""
    if not re.match(r"https?://[^/]", url) or "@" in url:
        raise UsageError(
            "the upstream is an address such as http://localhost:11434/v1, without a name or a key in it",
            hint="clients send their keys; or put the key into OPENAI_API_KEY and use --api-key",
        )
    url = re.sub(r"(/chat)?/completions$", "", url.rstrip("/"))
    return f"{url}/v1" if re.fullmatch(r"https?://[^/]+", url) else url
