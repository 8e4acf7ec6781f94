"""JSON answers from bytes: what was encoded once is sent as it is, never through FastAPI's own encoder."""

from typing import Any

import orjson
from starlette.responses import Response

__all__ = ["encode", "json_bytes"]

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def encode(value: Any) -> bytes:
    """NaN and Inf become null, numpy arrays become lists."""
    return orjson.dumps(value, option=_OPTIONS)


def json_bytes(body: bytes, *, status: int = 200) -> Response:
    """A response around bytes that are JSON already. Live data: no cache may keep it."""
    return Response(body, status_code=status, media_type="application/json", headers={"cache-control": "no-store"})
