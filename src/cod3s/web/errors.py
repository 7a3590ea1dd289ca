"""Every error in one shape: exceptions in, `{"error": {"message", "hint"}}` with a status out."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cod3s.errors import Cod3sError, MissingExtraError
from cod3s.web.refusals import RefusedError

_log = logging.getLogger("cod3s.web")
_HINTS = {404: "GET /api/docs lists what there is", 405: "the header Allow names the methods that are answered"}


def add_error_handlers(app: FastAPI) -> None:
    """Let the application answer every error in this shape."""
    app.add_exception_handler(RefusedError, _refused)
    app.add_exception_handler(Cod3sError, _explained)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _plain)
    app.add_exception_handler(Exception, _unforeseen)


async def _refused(_: Request, error: Any) -> Response:
    return _reply(error.status, error.message, error.hint, error.headers)


async def _explained(_: Request, error: Any) -> Response:
    return _reply(501 if isinstance(error, MissingExtraError) else 422, error.message, error.hint)


async def _invalid(_: Request, error: Any) -> Response:
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
    return _reply(422, f"{place}: {first['msg']}" if place else first["msg"], "GET /api/docs says what is taken")


async def _plain(_: Request, error: Any) -> Response:
    phrase = HTTPStatus(error.status_code).phrase.lower()
    return _reply(error.status_code, phrase, _HINTS.get(error.status_code, ""), error.headers)


async def _unforeseen(request: Request, error: Exception) -> Response:
    return _reply(
        500, "something went wrong in the server", "this is a bug in cod3s; the server's log shows where"
    )


def _reply(status: int, message: str, hint: str, headers: Any = None) -> Response:
    return JSONResponse({"error": {"message": message, "hint": hint}}, status, headers)
