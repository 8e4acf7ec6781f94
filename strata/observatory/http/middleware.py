"""One pure ASGI layer around the app: the guard before, security headers after. It never buffers a body."""

from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strata.errors import StrataError
from strata.observatory.http.auth import COOKIE, Guard
from strata.observatory.http.errors import error_response

__all__ = ["GuardMiddleware"]

_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; script-src 'self'; "
        "connect-src 'self'; object-src 'none'; base-uri 'self'; frame-ancestors 'none'"
    ),
}


class GuardMiddleware:
    """Refuses before the app sees a request; adds the headers to whatever leaves."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _with_headers(send)
        signed_in = self._sign_in(scope)
        if signed_in is not None:
            await signed_in(scope, receive, send)
            return
        try:
            self._guard.check(scope["method"], scope["path"], Headers(scope=scope))
        except StrataError as error:
            await error_response(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _sign_in(self, scope: Scope) -> RedirectResponse | None:
        """`/?token=…` as printed at the start: the browser keeps it as a cookie, and the address bar forgets it."""
        if scope["path"] != "/" or b"token=" not in scope["query_string"]:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not self._guard.matches(given):
            return None
        response = RedirectResponse("/", status_code=303)
        response.set_cookie(COOKIE, given, httponly=True, samesite="strict", max_age=30 * 86_400)
        return response


def _with_headers(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return wrapped
