"""The page and its files, by a fixed list of names: what a request names is looked up, never opened."""

from importlib.resources import files
from mimetypes import guess_type

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


def page_routes() -> APIRouter:
    """`/` and `/static/NAME` for the files that the package has now; not part of the API's description."""
    router = APIRouter(include_in_schema=False)
    known = {path.name: path for path in (files("cod3s.web") / "static").iterdir() if path.is_file()}

    def send(name: str) -> Response:
        if name not in known:
            raise HTTPException(404)
        suffix = name[name.rfind(".") :]
        kind = _TYPES.get(suffix) or guess_type(name)[0] or "application/octet-stream"
        return Response(known[name].read_bytes(), media_type=kind)

    @router.get("/")
    def page() -> Response:
        return send("index.html")

    @router.get("/static/{name}")
    def asset(name: str) -> Response:
        return send(name)

    return router
