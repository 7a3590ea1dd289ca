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
    """A request that the server does not answer; `status` is the HTTP status, `headers` go with it."""

    status = 400
    headers: Mapping[str, str] = {}


class ForeignHostError(RefusedError):
    """A request under a name that the server does not go by."""

    status = 403

    def __init__(self, host: str) -> None:
        super().__init__(
            f"this server does not answer to the host {host[:100]!r}",
            hint="open it by the address that it printed, or start it with --allow-host NAME",
        )


class ForeignOriginError(RefusedError):
    """A request that a page of another origin sent through the user's browser."""

    status = 403

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"pages of {origin[:100]!r} may not send requests to this server",
            hint="use the server's own page; behind a proxy, start it with --allow-host NAME",
        )


class WrongTypeError(RefusedError):
    """A body that is not declared as JSON, which any page may send without asking first."""

    status = 415

    def __init__(self) -> None:
        super().__init__("the body is not marked as JSON", hint="send the header Content-Type: application/json")


class TooLargeError(RefusedError):
    """A body with more bytes than the server reads."""

    status = 413

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"the body has more than {max_bytes} bytes", hint="send less in one request")


class TooSlowError(RefusedError):
    """A body that does not arrive in time."""

    status = 408

    def __init__(self) -> None:
        super().__init__("the body came too slowly", hint="send it again")


class CrowdedError(RefusedError):
    """More requests at once than the server takes."""

    status = 503
    headers = {"Retry-After": "1"}  # noqa: RUF012 - never changed

    def __init__(self) -> None:
        super().__init__("the server is busy", hint="try again in a moment")


def error_body(message: str, hint: str = "") -> dict[str, dict[str, str]]:
    """What went wrong, and what to do next."""
    return {"error": {"message": message, "hint": hint}}


def explain(error: Exception) -> dict[str, str]:
    """Message and hint for a client; only the log gets the details of unexpected errors."""
    if isinstance(error, Cod3sError):
        return {"message": error.message, "hint": error.hint}
    return {
        "message": "something went wrong in the server",
        "hint": "this is a bug in cod3s; the server's log shows where",
    }


def error_response(error: Exception) -> Response:
    """The reply to an error of ours, or to an unexpected one."""
    if isinstance(error, RefusedError):
        return JSONResponse(error_body(**explain(error)), error.status, dict(error.headers))
    if isinstance(error, MissingExtraError):
        return JSONResponse(error_body(**explain(error)), 501)
    return JSONResponse(error_body(**explain(error)), 422 if isinstance(error, Cod3sError) else 500)


def add_error_handlers(app: FastAPI, hints: Mapping[int, str] | None = None) -> None:
    """Let the application reply to every error in the one shape; `hints` are for statuses without their own."""
    known_hints = {405: "the header Allow names the methods that are answered", **(hints or {})}

    async def explained(_: Request, error: Exception) -> Response:
        return error_response(error)

    async def invalid(_: Request, error: Any) -> Response:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path"))
        message = f"{field}: {first['msg']}" if field else first["msg"]
        return JSONResponse(error_body(message, known_hints.get(422, "")), 422)

    async def plain(_: Request, error: Any) -> Response:
        phrase = HTTPStatus(error.status_code).phrase
        message = phrase.lower() if error.detail == phrase else str(error.detail)
        hint = known_hints.get(error.status_code, "")
        return JSONResponse(error_body(message, hint), error.status_code, error.headers)

    app.add_exception_handler(Cod3sError, explained)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, plain)
    app.add_exception_handler(Exception, explained)
