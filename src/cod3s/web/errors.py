"""Every error in one shape: exceptions in, `{"error": {"message", "hint"}}` with a status out."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cod3s.errors import Cod3sError, MissingExtraError
from cod3s.serving.headers import HEADERS
from cod3s.serving.refusal import error_body
from cod3s.web.refusals import RefusedError

_HINTS = {404: "GET /api/docs lists what there is", 405: "the header Allow names the methods that are answered"}


def add_error_handlers(app: FastAPI) -> None:
    """Let the application answer every error in this shape."""
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(Cod3sError, _explained)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(Exception, _unforeseen)


def explain(error: Exception) -> dict[str, str]:
    """Message and hint for a client; what was not foreseen is for the log alone."""
    if isinstance(error, Cod3sError):
        return {"message": error.message, "hint": error.hint}
    return {
        "message": "something went wrong in the server",
        "hint": "this is a bug in cod3s; the server's log shows where",
    }


async def _refused(_: Request, error: Any) -> Response:
    return _reply(error.status, error.headers, **explain(error))


async def _explained(_: Request, error: Any) -> Response:
    return _reply(501 if isinstance(error, MissingExtraError) else 422, **explain(error))


async def _invalid(_: Request, error: Any) -> Response:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    message = f"{place}: {first['msg']}" if place else first["msg"]
    return _reply(422, message=message, hint="GET /api/docs says what is taken")


async def _plain(_: Request, error: Any) -> Response:
    phrase = HTTPStatus(error.status_code).phrase.lower()
    return _reply(error.status_code, error.headers, message=phrase, hint=_HINTS.get(error.status_code, ""))


async def _unforeseen(_: Request, error: Exception) -> Response:
    return _reply(500, HEADERS, **explain(error))  # outside of all middleware, which would add the headers


def _reply(status: int, headers: Any = None, *, message: str, hint: str) -> Response:
    return JSONResponse(error_body(message, hint), status, headers)
