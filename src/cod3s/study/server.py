"""The server of a study: pages for raters and the administrator, and their JSON API.

Tokens are sent in the Authorization header. In links they come after the #, which browsers never send, so no log
along the way contains a token. There are no cookies, so no other site can act in a rater's name.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header
from pydantic import BaseModel, Field, StringConstraints
from sqlalchemy.exc import SQLAlchemyError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from cod3s.study.folder import Item, Study, read_items, read_study
from cod3s.study.raters import Rater, matches
from cod3s.study.service import RatingService, Shown, Standing, study_progress
from cod3s.study.store import Store, database_url, open_store
from cod3s.web.address import access_for, link, listen
from cod3s.web.error_replies import RefusedError, add_error_handlers, error_response
from cod3s.web.guard import Guard, SecurityHeaders
from cod3s.web.pages import page_routes
from cod3s.web.running import run_until_stopped


@dataclass(frozen=True)
class ServerOptions:
    """How a study is served."""

    host: str = "127.0.0.1"
    allowed_hosts: Sequence[str] = ()  # additional names that the server answers to
    prolific: bool = False  # raters come only from Prolific
    admin_token_hash: str = ""  # replaces that of the study
    max_body: int = 16 * 1024
    in_flight: int = 64
    joins_per_minute: int = 120


class NameEntry(BaseModel, extra="forbid"):
    """Someone who joins by name."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]


ProlificId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class ProlificEntry(BaseModel, extra="forbid"):
    """Someone who comes from Prolific, with the parameters of the link there."""

    prolific_pid: ProlificId
    study_id: ProlificId
    session_id: ProlificId


class Score(BaseModel, extra="forbid"):
    """A rating. `key` names the click, so that a page may send it again until it is acknowledged.

    `assigned_at` is copied from the statement that the rater saw.
    """

    score: Annotated[int, Field(ge=0, le=9, strict=True)]
    seconds: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)]
    key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{8,64}$")]
    assigned_at: Annotated[str, StringConstraints(max_length=64)] = ""


def _token(authorization: Annotated[str, Header()] = "") -> str:
    kind, _, token = authorization.partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


Token = Annotated[str, Depends(_token)]


def create_app(study: Study, items: list[Item], store: Store, options: ServerOptions) -> ASGIApp:
    """The study as an ASGI application."""
    app = FastAPI(title="cod3s study", docs_url=None, redoc_url=None, openapi_url=None)
    add_error_handlers(app)
    app.add_exception_handler(SQLAlchemyError, _database_failed)
    app.include_router(page_routes(Path(__file__).parent / "static", {"/": "rate.html", "/admin": "admin.html"}))
    app.get("/healthz")(lambda: {"status": "ok"})
    _add_raters(app, RatingService(study, items, store), options)
    _add_admin(app, study, items, store, options.admin_token_hash or study.admin_token_hash)
    access = access_for(options.host, allowed_hosts=options.allowed_hosts)
    return SecurityHeaders(Guard(app, access=access, max_body=options.max_body, in_flight=options.in_flight))


def serve_study(
    folder: Path, *, port: int, options: ServerOptions, database: str, announce: Callable[[str], None]
) -> None:
    """Serve the study in `folder` until ctrl-C; `announce` gets the address once the port is open."""
    study, items = read_study(folder), read_items(folder)
    with open_store(database_url(folder, database), study) as store, listen(options.host, port) as listener:
        app = create_app(study, items, store, options)
        announce(link(options.host, listener))
        run_until_stopped(app, listener, log_level="warning", lifespan="off")


class Throttle:
    """Admits a number of events per minute in total; safe to share between threads."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._passed: deque[float] = deque()
        self._turn = Lock()

    def passes(self) -> bool:
        """Whether a further request may pass now; if so, it is counted."""
        with self._turn:
            now = self._clock()
            while self._passed and self._passed[0] <= now - 60:
                self._passed.popleft()
            if len(self._passed) >= self._per_minute:
                return False
            self._passed.append(now)
            return True


def _add_raters(app: FastAPI, service: RatingService, options: ServerOptions) -> None:
    throttle = Throttle(options.joins_per_minute)

    def link_owner(token: Token) -> Rater:
        rater = service.rater(token)
        if rater is None:
            raise RefusedError(401, "this link does not belong to the study")
        return rater

    @app.get("/api/study")
    def describe() -> dict[str, Any]:
        study = service.study
        return {
            "id": study.id,
            "name": study.name,
            "question": study.question,
            "scale": study.scale,
            "instructions": study.paragraphs,
            "total": service.assignment.total,
            "prolific": options.prolific,
        }

    @app.post("/api/raters", status_code=201)
    def join(entry: NameEntry | ProlificEntry) -> dict[str, str]:
        if isinstance(entry, NameEntry) == options.prolific:
            way = "through Prolific" if options.prolific else "by name"
            raise RefusedError(403, f"raters join this study {way}")
        if not throttle.passes():
            raise RefusedError(429, "too many people are joining at once", retry_after=5)
        if isinstance(entry, NameEntry):
            return {"token": service.join(entry.name)}
        return {"token": service.join_from_prolific(entry.prolific_pid, entry.session_id)}

    @app.get("/api/standing")
    def standing(rater: Annotated[Rater, Depends(link_owner)]) -> Standing:
        return service.standing(rater)

    @app.get("/api/statements/{position}")
    def statement(position: int, rater: Annotated[Rater, Depends(link_owner)]) -> Shown:
        return service.show(rater, position)

    @app.put("/api/statements/{position}")
    def rate(position: int, score: Score, rater: Annotated[Rater, Depends(link_owner)]) -> Standing:
        return service.rate(rater, position, **score.model_dump())


def _add_admin(app: FastAPI, study: Study, items: list[Item], store: Store, token_hash: str) -> None:
    @app.get("/api/admin/progress")
    def progress(token: Token) -> dict[str, Any]:
        if not matches(token, token_hash):
            raise RefusedError(401, "this needs the study's admin token")
        return study_progress(study, items, store)


async def _database_failed(_request: Request, _error: Exception) -> Response:
    refusal = RefusedError(503, "the database does not answer", "try again in a moment", retry_after=2)
    return error_response(refusal)
