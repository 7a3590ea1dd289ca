"""An OpenAI-compatible endpoint before another server: `n` answers are n different answers."""

import hmac
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from cod3s import __version__
from cod3s.encode import load_encoder
from cod3s.web.address import access_for
from cod3s.web.bodies import require_json
from cod3s.web.completions import CHAT, FIELD, TEXT, Wishes, Writer, different_answers, wishes_model
from cod3s.web.error_replies import RefusedError, add_error_handlers
from cod3s.web.guard import protected
from cod3s.web.limits import Limits
from cod3s.web.pages import docs_routes
from cod3s.web.queue import WorkQueue, while_connected
from cod3s.web.upstream import Upstream, returned_headers

BODY_SECONDS = 60.0  # for a body to arrive
_log = logging.getLogger("cod3s.web")


def create_endpoint(
    url: str,
    limits: Limits,
    *,
    host: str = "127.0.0.1",
    allowed_hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    api_key: str = "",
    upstream_key: str = "",
) -> ASGIApp:
    """The endpoint before the server at `url`, to be served on `host`.

    Clients' keys are passed on. With an `api_key`, clients send that one, and the upstream gets `upstream_key`.
    """
    upstream, queue = Upstream(url, limits, upstream_key if api_key else None), WorkQueue(limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await upstream.close()

    app = FastAPI(
        title="cod3s",
        version=__version__,
        description=f"n different answers from the server at {upstream.base}.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.include_router(_routes(upstream, queue, limits), dependencies=[Depends(_key_check(api_key))])
    app.get("/healthz")(lambda: {"status": "ok", "requests": queue.requests})
    app.include_router(docs_routes(app))
    add_error_handlers(app, {404: "GET /docs lists the routes"})
    access = access_for(host, allowed_hosts=allowed_hosts, origins=origins)
    most, seconds = limits.at_once + limits.waiting, min(limits.seconds, BODY_SECONDS)
    return protected(app, access, origins, max_body=limits.body, body_seconds=seconds, in_flight=most)


def _key_check(api_key: str) -> Any:
    """A dependency that refuses requests without the server's key, if it has one."""

    async def check(request: Request) -> None:
        sent = request.headers.get("authorization", "").partition(" ")[2]
        if api_key and not hmac.compare_digest(sent.encode(), api_key.encode()):
            raise RefusedError(401, "this needs the server's API key", "send the header Authorization: Bearer KEY")

    return check


def _routes(upstream: Upstream, queue: WorkQueue, limits: Limits) -> APIRouter:
    router, wishes, encoder = APIRouter(prefix="/v1"), wishes_model(limits), load_encoder("static")
    properties = {
        "n": {"type": "integer", "minimum": 1, "maximum": limits.k, "default": 1},
        FIELD: wishes.model_json_schema(),
    }
    described = {"requestBody": {"content": {"application/json": {"schema": {"properties": properties}}}}}

    async def complete(request: Request) -> Response:
        """`n` answers that differ, by wishes in `cod3s`; all other fields are the upstream's.

        A request for one answer, or with tools, is passed on and streamed as it is.
        """
        require_json(request)
        content, path = await request.body(), request.url.path.removeprefix("/v1")
        headers = upstream.headers_for(request.headers)
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            body = None  # the upstream says what is wrong with it
        if not isinstance(body, dict):
            return Forwarded(upstream, queue, "POST", path, headers, content)
        wish = _read_wishes(wishes, body.pop(FIELD, {}))
        n = _count(body.get("n"), limits.k)
        if body.get("tools") or body.get("functions") or (n == 1 and not wish.unlike and not wish.like):
            content = json.dumps(body).encode() if FIELD.encode() in content else content
            return Forwarded(upstream, queue, "POST", path, headers, content)
        writer = Writer(upstream, path, headers, body, samples=n)
        reply = await queue.run(lambda: different_answers(writer, n, wish, encoder), request.receive)
        return reply or Response(status_code=499)  # which nobody will read: the client has gone

    for path in (CHAT, TEXT):
        router.post(path, openapi_extra=described)(complete)

    @router.get("/models")
    @router.get("/models/{name:path}")
    async def models(request: Request) -> Response:
        """The upstream's models."""
        path, headers = request.url.path.removeprefix("/v1"), upstream.headers_for(request.headers)
        return Forwarded(upstream, queue, "GET", path, headers)

    return router


def _read_wishes(model: type[Wishes], value: Any) -> Wishes:
    try:
        return model.model_validate_json(json.dumps(value))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in (FIELD, *first["loc"]))
        raise RefusedError(422, f"{place}: {first['msg']}", "GET /docs describes the field") from None


def _count(n: Any, most: int) -> int:
    """How many answers a request is for; 1 also where the upstream has to say that `n` is wrong."""
    if not isinstance(n, int) or isinstance(n, bool) or n <= 1:
        return 1
    if n > most:
        raise RefusedError(422, f"n is {n}, but at most {most} answers are given", "start the server with --max-k")
    return n


class Forwarded(Response):
    """The upstream's reply as it comes, byte for byte; where that breaks off, this does, too."""

    def __init__(
        self,
        upstream: Upstream,
        queue: WorkQueue,
        method: str,
        path: str,
        headers: Mapping[str, str],
        content: bytes = b"",
    ) -> None:
        super().__init__()
        self._queue, self._reply = queue, upstream.open(method, path, headers, content)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await while_connected(receive, lambda: self._forward(send))

    async def _forward(self, send: Send) -> None:
        started = False
        try:
            async with self._queue.turn(), self._reply as reply:
                raw = [(name.encode(), text.encode()) for name, text in returned_headers(reply).items()]
                await send({"type": "http.response.start", "status": reply.status_code, "headers": raw})
                started = True
                async for chunk in reply.aiter_raw():
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        except RefusedError as error:
            if not started:
                raise
            _log.warning("a reply broke off: %s", error.message)
            return  # without an end, so the client's connection is closed and it knows
        await send({"type": "http.response.body", "body": b"", "more_body": False})
