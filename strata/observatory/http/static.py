"""The dashboard's files, and its index for every client-side route. Says how to build it when it is missing."""

from mimetypes import guess_type
from pathlib import Path

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from strata.errors import NotFound
from strata.observatory.http.errors import error_response
from strata.observatory.http.origins import api_origin, content_policy

__all__ = ["WEB_DIR", "static_router"]

WEB_DIR = Path(__file__).resolve().parent.parent / "web"
# Vite puts a hash into these names, so a browser may keep them for ever.
_IMMUTABLE = "public, max-age=31536000, immutable"
_MISSING = """<!doctype html><meta charset="utf-8"><title>Strata</title>
<body style="font:16px/1.6 system-ui;max-width:40em;margin:4em auto;padding:0 1em">
<h1>Strata is running, its dashboard is not built</h1>
<p>Build it with <code>make dashboard</code> (needs Node 20), then reload this page.
The API works meanwhile: <a href="/docs">/docs</a>, <a href="/api/status">/api/status</a>.</p>"""


def static_router(web_dir: Path = WEB_DIR) -> APIRouter:
    """Mounted last: whatever no endpoint took is a file, or a page that the dashboard's own router shows."""
    router = APIRouter()
    root = web_dir.resolve()
    index = root / "index.html"

    @router.get("/{path:path}", include_in_schema=False)
    async def static(path: str) -> Response:
        if path.startswith("api/"):
            return error_response(NotFound(f"there is nothing at /{path}", hint="The API is described at /docs."))
        file = (root / path).resolve()
        if path and file.is_relative_to(root) and file.is_file():
            immutable = path.startswith("assets/")
            return _whole(file, {"cache-control": _IMMUTABLE if immutable else "no-cache"})
        if path.startswith("assets/"):
            return error_response(NotFound(f"there is no file /{path}"))
        if not index.is_file():
            return HTMLResponse(_MISSING, headers={"cache-control": "no-store"})
        policy = content_policy(api_origin(index.read_text(encoding="utf-8")))
        return _whole(index, {"cache-control": "no-cache", "content-security-policy": policy})

    return router


def _whole(file: Path, headers: dict[str, str]) -> Response:
    """Read at once: a few hundred kilobytes of our own take less time than one of the eight turns of a thread in which
    starlette would read them, while the browser waits for all of them."""
    kind = guess_type(file.name)[0] or "application/octet-stream"
    return Response(file.read_bytes(), media_type=kind, headers=headers)
