"""Checkpoints of a run with its checkpoint metrics, and the Prometheus page."""

from fastapi import APIRouter
from starlette.responses import Response

from strata.errors import StoreUnavailable
from strata.observatory.answers.checkpoints import RunCheckpoints
from strata.observatory.answers.series import RunSeries
from strata.observatory.cluster import views
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer

__all__ = ["history_router"]


def history_router(parts: Parts) -> APIRouter:
    """What outlives the live view."""
    router = APIRouter(tags=["history"])

    @router.get("/checkpoints/{run_id}")
    @router.get("/api/checkpoints/{run_id}")
    async def checkpoints(run_id: str) -> Answer[RunCheckpoints]:
        parts.live.tick()  # who has just sent points finds them
        info = parts.live.runs.info(run_id)
        names = {run_id, (info.task_id if info else None) or run_id}
        found = {row.id: row for row in views.checkpoints(parts.published.followed) if row.task_id in names}
        for name in names:
            try:
                for row in await parts.archive.of_run(name):
                    found.setdefault(row.id, row)
            except StoreUnavailable:
                break  # what the coordinator remembers is shown meanwhile
        mine = [one for name in _checkpoint_metrics(parts, run_id) for one in await _read(parts, run_id, name)]
        logged = await parts.curves.checkpoint_rows(run_id) if mine else []
        rows = sorted(found.values(), key=lambda row: row.created_at_ms or 0, reverse=True)
        return answer(RunCheckpoints(run_id=run_id, checkpoints=rows, series=mine, rows=logged))

    @router.get("/metrics", include_in_schema=False)
    async def prometheus() -> Response:
        return Response(parts.exposition.text(), media_type="text/plain; version=0.0.4")

    return router


def _checkpoint_metrics(parts: Parts, run_id: str) -> list[str]:
    """By name: a run may have thousands of others."""
    series = parts.live.series
    names = {series.key(number).metric for number in series.of_run(run_id)}
    return sorted(name for name in names if name.startswith("checkpoint"))


async def _read(parts: Parts, run_id: str, metric: str) -> list[RunSeries]:
    return await parts.curves.read(run_id, {"metric": metric}, 2000)
