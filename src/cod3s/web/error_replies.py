"""Errors as servers reply to them: `{"error": {"message", "hint"}}` with a status."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cod3s.errors import Cod3sError, MissingExtraError


class RefusedError(Cod3sError):
    """A request that the server does not answer: the HTTP `status` and the `headers` that go with it."""

    def __init__(self, status: int, message: str, hint: str = "", *, retry_after: int = 0) -> None:
        super().__init__(message, hint)
        self.status = status
        self.headers = {"Retry-After": str(retry_after)} if retry_after else {}


def explain(error: Exception) -> dict[str, str]:
    """Message and hint for a client; only the log gets the details of unexpected errors."""
    if isinstance(error, Cod3sError):
        return {"message": error.message, "hint": error.hint}
    return {
        "message": "something went wrong in the server",
        "hint": "this is a bug in cod3s; the server's log shows where",
    }


def error_response(error: Exception) -> Response:
    """The reply to an error of ours, or to an unexpected error."""
    content = {"error": explain(error)}
    if isinstance(error, RefusedError):
        return JSONResponse(content, error.status, error.headers)
    if isinstance(error, MissingExtraError):
        return JSONResponse(content, 501)
    return JSONResponse(content, 422 if isinstance(error, Cod3sError) else 500)


def add_error_handlers(app: FastAPI, hints: Mapping[int, str] | None = None) -> None:
    """Let the application reply to every error in the same shape; `hints` are added by status."""
    known_hints = {405: "the header Allow names the methods that are answered", **(hints or {})}

    async def explained(_: Request, error: Exception) -> Response:
        return error_response(error)

    async def invalid(_: Request, error: Any) -> Response:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
        message = f"{field}: {first['msg']}" if field else first["msg"]
        return error_response(RefusedError(422, message, known_hints.get(422, "")))

    async def plain(_: Request, error: Any) -> Response:
        phrase = HTTPStatus(error.status_code).phrase
        message = phrase.lower() if error.detail == phrase else str(error.detail)
        hint = known_hints.get(error.status_code, "")
        return JSONResponse({"error": {"message": message, "hint": hint}}, error.status_code, error.headers)

    app.add_exception_handler(Cod3sError, explained)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, plain)
    app.add_exception_handler(Exception, explained)
