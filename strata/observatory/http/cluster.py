"""The cluster's collections, sent as the read model encoded them."""

from fastapi import APIRouter
from starlette.responses import Response

from strata.observatory.history.logbook import LogQuery
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import json_bytes
from strata.observatory.records.encoding import encode

__all__ = ["cluster_router"]

_DASHBOARD = ("coordinator", "workers", "datasets", "checkpoints", "barriers", "metrics", "tasks")
_DASHBOARD_LOGS = 100


def cluster_router(parts: Parts) -> APIRouter:
    """GETs without parameters: bytes from a cache."""
    router = APIRouter(tags=["cluster"])

    @router.get("/api/workers")
    async def workers() -> Response:
        return json_bytes(parts.board.body("workers"))

    @router.get("/api/checkpoints")
    async def checkpoints() -> Response:
        return json_bytes(parts.board.body("checkpoints"))

    @router.get("/api/barriers")
    async def barriers() -> Response:
        return json_bytes(parts.board.body("barriers"))

    @router.get("/api/metrics")
    async def metrics() -> Response:
        return json_bytes(parts.board.body("metrics"))

    @router.get("/api/alerts")
    async def alerts() -> Response:
        return json_bytes(encode(parts.alerts.newest()))

    @router.get("/api/dashboard")
    async def dashboard() -> Response:
        logs = await parts.logs.search(LogQuery(limit=_DASHBOARD_LOGS))
        pieces = [b'"%b":%b' % (name.encode(), parts.board.body(name)) for name in _DASHBOARD]
        pieces.append(b'"logs":%b' % encode([entry.to_dict() for entry in logs]))
        return json_bytes(b"{%b}" % b",".join(pieces))

    return router
