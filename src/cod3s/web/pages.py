"""Pages and their files, served from a fixed list of names: no request can name a path on the disk."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

_SHARED = Path(__file__).parent / "shared"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


def page_routes(folder: Path, pages: Mapping[str, str]) -> APIRouter:
    """`/static/NAME` for the files in `folder` and the shared ones, and `pages` (path → file) at their paths."""
    router = APIRouter(include_in_schema=False)
    files = [file for room in (_SHARED, folder) for file in room.iterdir() if file.suffix in _TYPES]
    contents = {file.name: (file.read_bytes(), _TYPES[file.suffix]) for file in files}

    def send(name: str) -> Response:
        if name not in contents:
            raise HTTPException(404)
        content, media_type = contents[name]
        return Response(content, media_type=media_type)

    for path, name in pages.items():
        router.get(path)(partial(send, name))
    router.get("/static/{name}")(send)
    return router
