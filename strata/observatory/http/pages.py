"""Addresses that are both an endpoint and a page of the dashboard (/runs, /metrics, /checkpoints/…): a browser that
navigates there gets the page, everybody else the data.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["PageMiddleware"]

_BOTH = ("runs", "metrics", "checkpoints")


class PageMiddleware:
    """Sends a navigating browser to the dashboard's index, which shows the page that the address names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].split("/")[1] not in _BOTH:
            await self._app(scope, receive, send)
            return
        if _navigates(scope):
            scope = {**scope, "path": "/index.html", "raw_path": b"/index.html"}
        await self._app(scope, receive, _varying(send))


def _navigates(scope: Scope) -> bool:
    """Prometheus, curl and fetch() do not ask for HTML first; a browser's address bar does."""
    return scope["method"] == "GET" and Headers(scope=scope).get("accept", "").startswith("text/html")


def _varying(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).add_vary_header("Accept")
        await send(message)

    return wrapped
