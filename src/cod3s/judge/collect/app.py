"""The server of a study: pages for raters and the administrator, and the JSON that they speak.

Tokens come in the Authorization header. In links they stand after the #, which browsers never send, so that no log
on the way holds one.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import ASGIApp

from cod3s.errors import Cod3sError
from cod3s.judge.collect.desk import Desk, NoSuchPlaceError, Shown, Standing, TakenBackError
from cod3s.judge.collect.guard import Guard, Throttle
from cod3s.judge.collect.progress import study_progress
from cod3s.judge.collect.store import Store
from cod3s.judge.collect.tokens import matches
from cod3s.judge.study.study import Item, Rater, Study
from cod3s.serving.headers import SecurityHeaders
from cod3s.serving.pages import page_routes
from cod3s.serving.refusal import error_body


@dataclass(frozen=True)
class ServerOptions:
    """How a study is served."""

    prolific: bool = False  # raters come from Prolific, and only from there
    admin_token_hash: str = ""  # in place of the study's own
    max_body: int = 16 * 1024
    in_flight: int = 64
    joins_per_minute: int = 120


class NameEntry(BaseModel):
    """Someone who gives a name."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=80)]


ProlificId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class ProlificEntry(BaseModel):
    """Someone who comes from Prolific, with the parameters of its link."""

    model_config = ConfigDict(extra="forbid")
    prolific_pid: ProlificId
    study_id: ProlificId
    session_id: ProlificId


class Score(BaseModel):
    """A rating. `key` names the click, so that a page may send it again until it is acknowledged.

    `given` is that of the statement that the rater saw.
    """

    model_config = ConfigDict(extra="forbid")
    score: Annotated[int, Field(ge=0, le=9, strict=True)]
    seconds: Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)]
    key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{8,64}$")]
    given: Annotated[str, StringConstraints(max_length=64)] = ""


def create_app(study: Study, items: list[Item], store: Store, options: ServerOptions | None = None) -> ASGIApp:
    """The study as an ASGI app, guarded."""
    options = options or ServerOptions()
    app = FastAPI(title="cod3s judge", docs_url=None, redoc_url=None, openapi_url=None)
    desk = Desk(study, items, store)
    _add_errors(app)
    app.include_router(page_routes(Path(__file__).parent / "static", {"/": "rate.html", "/admin": "admin.html"}))
    app.get("/healthz")(lambda: {"status": "ok"})
    _add_raters(app, desk, options)
    _add_admin(app, study, items, store, options.admin_token_hash or study.admin_token_hash)
    return SecurityHeaders(Guard(app, max_body=options.max_body, in_flight=options.in_flight))


def _add_raters(app: FastAPI, desk: Desk, options: ServerOptions) -> None:
    throttle = Throttle(options.joins_per_minute)

    def link_owner(authorization: Annotated[str, Header()] = "") -> Rater:
        found = desk.rater(_token(authorization))
        if found is None:
            raise HTTPException(401, "this link does not belong to the study")
        return found

    @app.get("/api/study")
    def describe() -> dict[str, Any]:
        study = desk.study
        return {
            "id": study.id,
            "name": study.name,
            "question": study.question,
            "scale": study.scale,
            "instructions": [part.strip() for part in study.instructions.split("\n\n") if part.strip()],
            "total": desk.assignment.total,
            "prolific": options.prolific,
        }

    @app.post("/api/raters", status_code=201)
    def join(entry: NameEntry | ProlificEntry) -> dict[str, str]:
        if isinstance(entry, NameEntry) == options.prolific:
            raise HTTPException(
                403, "this study takes raters " + ("from Prolific" if options.prolific else "by name")
            )
        if not throttle.passes():
            raise HTTPException(429, "too many people are joining at once", headers={"Retry-After": "5"})
        if isinstance(entry, NameEntry):
            return {"token": desk.join(entry.name)}
        return {"token": desk.join_from_prolific(entry.prolific_pid, entry.session_id)}

    @app.get("/api/standing")
    def standing(rater: Annotated[Rater, Depends(link_owner)]) -> Standing:
        return desk.standing(rater)

    @app.get("/api/statements/{place}")
    def statement(place: int, rater: Annotated[Rater, Depends(link_owner)]) -> Shown:
        return desk.show(rater, place)

    @app.put("/api/statements/{place}")
    def rate(place: int, score: Score, rater: Annotated[Rater, Depends(link_owner)]) -> Standing:
        return desk.rate(rater, place, score.score, score.seconds, score.key, score.given)


def _add_admin(app: FastAPI, study: Study, items: list[Item], store: Store, token_hash: str) -> None:
    def administrator(authorization: Annotated[str, Header()] = "") -> None:
        if not matches(_token(authorization), token_hash):
            raise HTTPException(401, "this needs the study's admin token")

    allowed = [Depends(administrator)]

    @app.get("/api/admin/progress", dependencies=allowed)
    def progress() -> dict[str, Any]:
        return study_progress(study, items, store)

    @app.get("/api/admin/ratings", dependencies=allowed)
    def ratings() -> list[dict[str, Any]]:
        return [
            {name: getattr(rating, name) for name in ("rater", "item", "score", "seconds", "at", "revision")}
            for rating in store.ratings()
        ]


def _token(authorization: str) -> str:
    kind, _, token = authorization.partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _add_errors(app: FastAPI) -> None:
    """Every error has one shape, and none shows what went on inside."""

    @app.exception_handler(StarletteHTTPException)
    async def http(_request: Request, error: StarletteHTTPException) -> JSONResponse:
        return JSONResponse(error_body(str(error.detail)), error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        places = sorted({".".join(map(str, part["loc"])) for part in error.errors()})
        return JSONResponse(error_body("the request does not fit", f"look at: {', '.join(places)}"[:300]), 422)

    @app.exception_handler(Cod3sError)
    async def known(_request: Request, error: Cod3sError) -> JSONResponse:
        status = {NoSuchPlaceError: 404, TakenBackError: 409}.get(type(error), 422)
        return JSONResponse(error_body(error.message, error.hint), status)

    @app.exception_handler(SQLAlchemyError)
    async def storage(_request: Request, _error: SQLAlchemyError) -> JSONResponse:
        body = error_body("the database does not answer", "try again in a moment")
        return JSONResponse(body, 503, {"Retry-After": "2"})

    @app.exception_handler(Exception)
    async def unknown(_request: Request, _error: Exception) -> JSONResponse:
        return JSONResponse(error_body("something went wrong in the server"), 500)
