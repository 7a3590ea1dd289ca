"""The application: a generator and limits in, something that an ASGI server can run out."""

from collections.abc import Sequence
from pathlib import Path

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from cod3s import __version__
from cod3s.decode.generator import Generator
from cod3s.serving.headers import SecurityHeaders
from cod3s.serving.pages import page_routes
from cod3s.web.api import api_routes
from cod3s.web.errors import add_error_handlers
from cod3s.web.explorer import Explorer
from cod3s.web.gate import Gate
from cod3s.web.limits import Limits
from cod3s.web.log import RequestLog
from cod3s.web.manual import manual_routes


def create_app(generator: Generator, limits: Limits | None = None, *, origins: Sequence[str] = ()) -> FastAPI:
    """The explorer of the generator's bundle. Pages of `origins` may call the API; none else but its own."""
    limits = limits or Limits()
    explorer, gate = Explorer(generator, limits), Gate(limits)
    explorer.warm_up()
    app = FastAPI(
        title="cod3s",
        version=__version__,
        description="Answers that mean different things.",
        docs_url=None,  # these load scripts from a CDN; `manual` has what they show
        redoc_url=None,
    )
    app.include_router(api_routes(explorer, gate, limits, generator.facts))
    app.include_router(manual_routes(app))
    app.include_router(page_routes(Path(__file__).parent / "static", {"/": "index.html"}))
    add_error_handlers(app)
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["Content-Type"]
        )
    app.add_middleware(SecurityHeaders)
    app.add_middleware(RequestLog)
    return app
