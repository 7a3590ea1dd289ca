"""The page that describes the API and lets readers try it, made from the OpenAPI document without a CDN."""

import json
import re
from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.responses import HTMLResponse, Response

_EXAMPLES: dict[str, Any] = {
    "text": "the baker forgot the yeast",
    "candidates": ["it rained all day", "rain fell until night", "the bridge was closed"],
    "k": 2,
}
"""What the forms hold at first, for fields of these names."""
_BOUNDS = {"maxLength": "at most {} characters", "maxItems": "at most {}", "pattern": "like {}"}


def api_page_routes(app: FastAPI) -> APIRouter:
    """`/api/docs`, and the same page at `/docs`, where FastAPI's users look for it."""
    router = APIRouter(include_in_schema=False)

    @router.get("/api/docs")
    @router.get("/docs")
    def api_page() -> Response:
        return HTMLResponse(render(app.openapi()))

    return router


def render(spec: dict[str, Any]) -> str:
    """The OpenAPI document as a page of HTML."""
    routes = "".join(
        _route(path, method, route) for path, methods in spec["paths"].items() for method, route in methods.items()
    )
    info = spec["info"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API</title>"
        '<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/colors.css">'
        '<link rel="stylesheet" href="/static/docs.css">'
        '<script src="/static/docs.js" type="module"></script></head>'
        "<body><main>"
        f"<h1>The {escape(info['title'])} API</h1><p>{escape(info['description'])} "
        f'Version {escape(info["version"])}. <a href="/openapi.json">OpenAPI document</a>, '
        f'<a href="/">the page</a>.</p>{routes}</main></body></html>'
    )


def _route(path: str, method: str, route: dict[str, Any]) -> str:
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    required = set(body.get("required", ()))
    rows = [
        _table_row(parameter["name"], parameter["schema"], parameter.get("description", ""), parameter["required"])
        for parameter in route.get("parameters", ())
    ]
    rows += [
        _table_row(name, schema, schema.get("description", ""), name in required)
        for name, schema in body.get("properties", {}).items()
    ]
    statuses = "".join(
        f"<li><code>{status}</code> {escape(reply['description'])}</li>"
        for status, reply in sorted(route["responses"].items())
    )
    about = "".join(f"<p>{_marked(part)}</p>" for part in route.get("description", "").split("\n\n") if part)
    return (
        f"<section><h2><code>{method.upper()} {escape(path)}</code></h2>{about}"
        f"{_table(rows)}<ul>{statuses}</ul>{_form(path, method, route, body)}</section>"
    )


def _form(path: str, method: str, route: dict[str, Any], body: dict[str, Any]) -> str:
    """A form that sends a request of the reader's; `docs.js` shows the reply."""
    inputs = "".join(
        f'<label>{escape(parameter["name"])} <input name="{escape(parameter["name"])}" '
        f'value="{escape(str(_first_value(parameter["schema"])))}" data-in="{escape(parameter["in"])}"></label>'
        for parameter in route.get("parameters", ())
    )
    if body:
        text = json.dumps(_example(body), indent=2, ensure_ascii=False)
        inputs += f"<label>body <textarea name=body rows=7 spellcheck=false>{escape(text)}</textarea></label>"
    return (
        f'<form class=try data-method="{escape(method.upper())}" data-path="{escape(path)}">{inputs}'
        "<button>Try it</button><pre hidden tabindex=0 aria-live=polite></pre></form>"
    )


def _example(body: dict[str, Any]) -> dict[str, Any]:
    """A small body: the required fields and k."""
    wanted = {*body.get("required", ()), "k"}
    return {
        name: _EXAMPLES.get(name, _first_value(schema))
        for name, schema in body.get("properties", {}).items()
        if name in wanted
    }


def _first_value(schema: dict[str, Any]) -> Any:
    """The default, or the first of the choices, or zeros as long as a signature."""
    if schema.get("default") is not None:
        return schema["default"]
    bits = re.search(r"\{(\d+)\}", schema.get("pattern", ""))
    return next(iter(schema.get("enum", [])), schema.get("const", "0" * int(bits[1]) if bits else ""))


def _table_row(name: str, schema: dict[str, Any], about: str, required: bool) -> str:
    return (
        f"<tr><th scope=row><code>{escape(name)}</code>{' (required)' if required else ''}</th>"
        f"<td>{escape(_kind(schema))}</td><td>{escape(about)}</td></tr>"
    )


def _table(rows: list[str]) -> str:
    head = "<tr><th scope=col>field</th><th scope=col>type</th><th scope=col>meaning</th></tr>"
    table = f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"
    return f"<div class=wide>{table}</div>" if rows else ""


def _kind(schema: dict[str, Any]) -> str:
    """A schema in a few words: `integer, 1 to 30, default 10`."""
    if "anyOf" in schema:
        kinds = [_kind(option) for option in schema["anyOf"] if option.get("type") != "null"]
        return " or ".join(kinds)
    if "enum" in schema or "const" in schema:
        values = [str(value) for value in schema.get("enum", [schema.get("const")])]
        parts = [", ".join(values) if len(values) <= 8 else f"{', '.join(values[:8])} … ({len(values)} names)"]
    else:
        parts = [str(schema.get("type", "anything"))]
    low, high = schema.get("minimum"), schema.get("maximum")
    if high is not None:
        parts.append(f"{_number(low)} to {_number(high)}" if low is not None else f"at most {_number(high)}")
    parts += [words.format(schema[name]) for name, words in _BOUNDS.items() if name in schema]
    if "items" in schema:
        parts.append(f"each {_kind(schema['items'])}")
    if schema.get("default") is not None:
        parts.append(f"default {schema['default']}")
    return ", ".join(parts)


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _marked(text: str) -> str:
    """Escaped text, with the parts between backticks set as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
