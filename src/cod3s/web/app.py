"""The explorer as an ASGI application."""

from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI
from starlette.types import ASGIApp

from cod3s import __version__
from cod3s.decode.generator import Generator
from cod3s.web.address import access_for
from cod3s.web.api import api_routes
from cod3s.web.error_replies import add_error_handlers
from cod3s.web.explorer import Explorer
from cod3s.web.guard import protected
from cod3s.web.limits import Limits
from cod3s.web.pages import docs_routes, page_routes
from cod3s.web.queue import WorkQueue

_HINTS = {404: "GET /docs lists the routes", 422: "GET /docs describes what each route takes"}


def create_app(
    generator: Generator,
    limits: Limits | None = None,
    *,
    host: str = "127.0.0.1",
    allowed_hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
) -> ASGIApp:
    """The explorer of the generator's bundle, to be served on `host`.

    It answers to that host, to this machine's local names and to `allowed_hosts`. Its page and the pages of
    `origins` may call the API; others may not.
    """
    limits = limits or Limits()
    explorer, queue = Explorer(generator, limits), WorkQueue(limits)
    explorer.warm_up()
    app = FastAPI(
        title="cod3s",
        version=__version__,
        description="Answers that mean different things.",
        docs_url=None,  # it would load its files from a CDN; `docs_routes` has them here
        redoc_url=None,
    )
    app.include_router(api_routes(explorer, queue, limits, generator.facts))
    app.include_router(docs_routes(app))
    app.include_router(page_routes(Path(__file__).parent / "static", {"/": "index.html"}))
    add_error_handlers(app, _HINTS)
    access = access_for(host, allowed_hosts=allowed_hosts, origins=origins)
    return protected(app, access, origins, max_body=limits.body, body_seconds=limits.seconds)
