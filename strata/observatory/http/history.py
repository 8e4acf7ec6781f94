"""Checkpoints of a run with its checkpoint metrics, and the Prometheus page."""

from fastapi import APIRouter
from starlette.responses import Response

from strata.errors import StoreUnavailable
from strata.observatory.encoding import encode
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import json_bytes
from strata.observatory.readmodel import views

__all__ = ["history_router"]


def history_router(parts: Parts) -> APIRouter:
    """What outlives the live view."""
    router = APIRouter(tags=["history"])

    @router.get("/checkpoints/{run_id}")
    @router.get("/api/checkpoints/{run_id}")
    async def checkpoints(run_id: str) -> Response:
        info = parts.live.runs.info(run_id)
        names = {run_id, (info.task_id if info else None) or run_id}
        found = {row["id"]: row for row in views.checkpoints(parts.board.cluster) if row["task_id"] in names}
        for name in names:
            try:
                for row in await parts.keeper.of_run(name):
                    found.setdefault(row["id"], row)
            except StoreUnavailable:
                break  # what the coordinator remembers is shown meanwhile
        series = await parts.curves.read(run_id, {}, 2000)
        mine = [one for one in series if one["metric"].startswith("checkpoint")]
        rows = sorted(found.values(), key=lambda row: row["created_at_ms"] or 0, reverse=True)
        return json_bytes(encode({"run_id": run_id, "checkpoints": rows, "series": mine}))

    @router.get("/metrics", include_in_schema=False)
    async def prometheus() -> Response:
        return Response(parts.exposition.text(), media_type="text/plain; version=0.0.4")

    return router
