"""Is it up, and is the coordinator reachable from here?"""

from fastapi import APIRouter
from starlette.responses import Response

from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import json_bytes
from strata.observatory.records.encoding import encode

__all__ = ["status_router"]

_OK = encode({"status": "ok"})


def status_router(parts: Parts) -> APIRouter:
    """Health answers as long as the loop turns; status says what it is connected to."""
    router = APIRouter(tags=["status"])

    @router.get("/health")
    @router.get("/api/health")
    async def health() -> Response:
        return json_bytes(_OK)

    @router.get("/api/status")
    async def status() -> Response:
        return json_bytes(encode(parts.board.status()))

    return router
