"""JSON answers from bytes: what was encoded once is sent as it is, never through FastAPI's own encoder."""

from starlette.responses import Response

__all__ = ["json_bytes"]


def json_bytes(body: bytes, *, status: int = 200) -> Response:
    """A response around bytes that are JSON already. Live data: no cache may keep it."""
    return Response(body, status_code=status, media_type="application/json", headers={"cache-control": "no-store"})
