"""One pure ASGI layer around the app: the guard before, security headers after. It never buffers a body."""

from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strata.errors import StrataError
from strata.observatory.http.asker import ASKER, VISITOR, describe
from strata.observatory.http.auth import Guard
from strata.observatory.http.errors import error_response
from strata.observatory.http.listener import PEER
from strata.observatory.http.origins import content_policy

__all__ = ["GuardMiddleware"]

_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": content_policy(),
}


class GuardMiddleware:
    """Refuses before the app sees a request; adds the headers to whatever leaves. `routes` are the app's own: the row
    of the table is the route that will take the request."""

    def __init__(self, app: ASGIApp, guard: Guard, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._guard = guard
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no route speaks anything else, so there is no row for it
        send = _with_headers(send)
        peer = scope.get("state", {}).get(PEER)
        try:
            headers = Headers(scope=scope)
            visitor = self._guard.check(self._command(scope), scope["method"], headers, peer)
            scope.setdefault("state", {}).update({ASKER: describe(visitor, headers), VISITOR: visitor})
        except StrataError as error:
            await error_response(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _command(self, scope: Scope) -> str | None:
        for route in self._routes:
            if route.matches(scope)[0] is Match.FULL:
                return f"{scope['method']} {getattr(route, 'path', '')}"
        return None


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return wrapped
