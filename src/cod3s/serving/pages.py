"""Pages and their files, by a fixed list of names: what a request names is looked up, never opened."""

from collections.abc import Callable, Mapping
from mimetypes import guess_type
from pathlib import Path

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

_SHARED = Path(__file__).parent / "static"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


def page_routes(folder: Path, pages: Mapping[str, str]) -> APIRouter:
    """`/static/NAME` for the files of `folder` and those that all pages share, and `pages` by their paths."""
    router = APIRouter(include_in_schema=False)
    known = {file.name: file.read_bytes() for own in (_SHARED, folder) for file in own.iterdir() if file.is_file()}

    def send(name: str) -> Response:
        if name not in known:
            raise HTTPException(404)
        suffix = name[name.rfind(".") :]
        kind = _TYPES.get(suffix) or guess_type(name)[0] or "application/octet-stream"
        return Response(known[name], media_type=kind)

    def sends(name: str) -> Callable[[], Response]:
        return lambda: send(name)

    for path, name in pages.items():
        router.get(path)(sends(name))
    router.get("/static/{name}")(send)
    return router
