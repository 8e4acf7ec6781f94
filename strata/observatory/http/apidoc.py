"""The API's own page at /docs: every endpoint of the OpenAPI schema as plain HTML. No script, nothing from elsewhere:
it works offline and under the site's strict content policy.
"""

import asyncio
from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import FastAPI
from starlette.responses import HTMLResponse, JSONResponse

__all__ = ["add_api_page", "render"]

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2.5em auto;padding:0 1em;color-scheme:light dark}
h1{font-size:1.5em}h2{font-size:1.05em;margin:2em 0 .5em;text-transform:capitalize}
article{border-top:1px solid #8884;padding:.7em 0}code{font:13px ui-monospace,monospace}
.method{display:inline-block;min-width:3.6em;font-weight:600}p{margin:.3em 0 0;opacity:.8}
table{border-collapse:collapse;margin:.4em 0 0}td{padding:.1em 1.2em .1em 0;vertical-align:top}
"""
_METHODS = ("get", "post", "put", "patch", "delete")


def add_api_page(app: FastAPI) -> None:
    """GET /docs and the schema itself. It is made on first use, which takes half a second: never on the loop."""

    @app.get("/openapi.json", include_in_schema=False)
    async def description() -> JSONResponse:
        return JSONResponse(await asyncio.to_thread(app.openapi))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(render(await asyncio.to_thread(app.openapi)))


def render(schema: dict[str, Any]) -> str:
    """The page, endpoints grouped by their first tag in the order of the schema."""
    info = schema["info"]
    groups: dict[str, list[str]] = {}
    for path, method, operation in _operations(schema):
        groups.setdefault((operation.get("tags") or ["general"])[0], []).append(_article(path, method, operation))
    body = "".join(f"<section><h2>{escape(tag)}</h2>{''.join(items)}</section>" for tag, items in groups.items())
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(info['title'])} API</title>"
        f"<meta name=viewport content='width=device-width'><style>{_STYLE}</style>"
        f"<h1>{escape(info['title'])} API {escape(info['version'])}</h1>"
        f"<p>For programs: <a href=/openapi.json>openapi.json</a>. Errors are "
        f'<code>{{"error": {{"code", "message", "hint", "field"}}}}</code> with a fitting status.</p>{body}</html>'
    )


def _operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in schema["paths"].items():
        for method in _METHODS:
            if method in item:
                yield path, method, item[method]


def _article(path: str, method: str, operation: dict[str, Any]) -> str:
    description = operation.get("description", "")
    rows = "".join(_row(parameter) for parameter in operation.get("parameters", []))
    return (
        f"<article><code><span class=method>{method.upper()}</span> {escape(path)}</code>"
        + (f"<p>{escape(description)}</p>" if description else "")
        + (f"<table>{rows}</table>" if rows else "")
        + "</article>"
    )


def _row(parameter: dict[str, Any]) -> str:
    schema = parameter.get("schema", {})
    kinds = [schema.get("type"), *(choice.get("type") for choice in schema.get("anyOf", []))]
    kind = " or ".join(kind for kind in kinds if kind and kind != "null")
    default = f" = {schema['default']}" if schema.get("default") is not None else ""
    need = "required" if parameter.get("required") else ""
    return (
        f"<tr><td><code>{escape(parameter['name'])}{escape(default)}</code><td>{escape(kind)}<td>{need}"
        f"<td>{escape(parameter.get('description', ''))}</tr>"
    )
