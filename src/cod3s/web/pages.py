"""Pages and their files, served from fixed lists of names: no request can name a path on the disk."""

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.exceptions import HTTPException
from starlette.responses import Response

from cod3s.errors import require

_SHARED = Path(__file__).parent / "shared"
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
_READ = ["GET", "HEAD"]


def page_routes(folder: Path, pages: Mapping[str, str]) -> APIRouter:
    """`/static/NAME` for the files in `folder` and the shared ones, and `pages` (path → file) at their paths."""
    router = APIRouter(include_in_schema=False)
    files = [file for room in (_SHARED, folder) for file in room.iterdir() if file.suffix in _TYPES]
    send = partial(_send, {file.name: _response(file) for file in files})
    for path, name in pages.items():
        router.api_route(path, methods=_READ)(partial(send, name))
    router.api_route("/static/{name}", methods=_READ)(send)
    return router


def docs_routes(app: FastAPI) -> APIRouter:
    """`/docs`: FastAPI's page about the API; fastapi-offline ships its files, which would else come from a CDN."""
    router = APIRouter(include_in_schema=False)
    folder = Path(require("fastapi_offline", "serve").__file__).parent / "static"
    files = [folder / "swagger-ui-bundle.js", folder / "swagger-ui.css", _SHARED / "icon.svg"]
    send = partial(_send, {file.name: _response(file) for file in files})
    page = get_swagger_ui_html(
        openapi_url="/openapi.json",
        title=f"{app.title} API",
        swagger_js_url="/docs/swagger-ui-bundle.js",
        swagger_css_url="/docs/swagger-ui.css",
        swagger_favicon_url="/docs/icon.svg",
        swagger_ui_parameters={"defaultModelsExpandDepth": -1, "tryItOutEnabled": True},
    )
    (script,) = re.findall(rb"<script>(.*?)</script>", bytes(page.body), re.DOTALL)
    digest = b64encode(sha256(script).digest()).decode()
    page.headers["Content-Security-Policy"] = (
        "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'; img-src 'self' data:; "
        f"style-src 'self' 'unsafe-inline'; script-src 'self' 'sha256-{digest}'"
    )
    router.api_route("/docs", methods=_READ)(lambda: page)
    router.api_route("/docs/{name}", methods=_READ)(send)
    return router


def _response(file: Path) -> Response:
    return Response(file.read_bytes(), media_type=_TYPES[file.suffix])


def _send(files: Mapping[str, Response], name: str) -> Response:
    if name not in files:
        raise HTTPException(404)
    return files[name]
