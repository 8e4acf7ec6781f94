"""How much a request may send: counted as it comes, whatever it says of itself. One pure ASGI layer."""

import re

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strata.errors import Busy, InvalidArgument
from strata.observatory.http.errors import error_response

__all__ = ["BodyLimit"]

_POINTS = re.compile(r"/api/runs/[^/]+/points")
# A batch of 200,000 points, the most that is taken at once, has about 20 MB as JSON.
_MAX_POINTS_BYTES = 32 << 20
_MAX_BYTES = 1 << 20
_MAX_ALL_BYTES = 128 << 20  # of all requests that are being read; JSON takes several times as much once it is parsed
_CLOSE = {"connection": "close"}  # what else the client sends is not read


class BodyLimit:
    """Answers 413 to a body that is too large, and 429 while too many large ones come at once."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, limit = Headers(scope=scope), _limit(scope["method"], scope["path"])
        declared = int(headers.get("content-length", 0))
        if declared > limit or (not limit and "transfer-encoding" in headers):
            error = InvalidArgument(_sentence(limit), hint="Send it in several requests.")
            await error_response(error, status=413, headers=_CLOSE)(scope, receive, send)
            return
        if self._held + declared > _MAX_ALL_BYTES:
            await error_response(Busy(_busy()), headers=_CLOSE)(scope, receive, send)
            return
        held = 0

        async def counted() -> Message:
            nonlocal held
            message = await receive()
            size = len(message.get("body", b""))
            held += size
            self._held += size
            if held > limit:
                raise HTTPException(413, _sentence(limit), _CLOSE)
            if self._held > _MAX_ALL_BYTES:
                raise HTTPException(429, _busy(), _CLOSE)
            return message

        try:
            await self._app(scope, counted, send)
        finally:
            self._held -= held


def _limit(method: str, path: str) -> int:
    if method in ("GET", "OPTIONS"):
        return 0
    return _MAX_POINTS_BYTES if _POINTS.fullmatch(path) else _MAX_BYTES


def _sentence(limit: int) -> str:
    return f"the body is larger than {limit:,} bytes" if limit else "this request takes no body"


def _busy() -> str:
    return f"requests with more than {_MAX_ALL_BYTES:,} bytes are being read: try again"
