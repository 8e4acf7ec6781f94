"""Checkpoints of a run with its checkpoint metrics, and pins: a pin lies in the checkpoint's own store, and retention
honours it."""

from fastapi import APIRouter

from strata.errors import StoreUnavailable
from strata.observatory.answers.checkpoints import Pinned, RunCheckpoints
from strata.observatory.cluster import views
from strata.observatory.http.body import Body
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer

__all__ = ["checkpoints_router"]


class Pin(Body):
    """Without a body, a pin is set."""

    pinned: bool = True


def checkpoints_router(parts: Parts) -> APIRouter:
    """A pin is answered when it is durable; the list of checkpoints shows it from then on."""
    router = APIRouter(tags=["checkpoints"])

    @router.post("/api/checkpoints/{checkpoint_id}/pin")
    async def pin(checkpoint_id: str, body: Pin | None = None) -> Answer[Pinned]:
        return await _set(checkpoint_id, pinned=body is None or body.pinned)

    @router.post("/api/checkpoints/{checkpoint_id}/unpin")
    async def unpin(checkpoint_id: str) -> Answer[Pinned]:
        return await _set(checkpoint_id, pinned=False)

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
        mine = []
        for name in _checkpoint_metrics(parts, run_id):
            mine += await parts.curves.read(run_id, {"metric": name}, 2000)
        logged = await parts.curves.checkpoint_rows(run_id) if mine else []
        rows = sorted(found.values(), key=lambda row: row.created_at_ms or 0, reverse=True)
        return answer(RunCheckpoints(run_id=run_id, checkpoints=rows, series=mine, rows=logged))

    async def _set(checkpoint_id: str, *, pinned: bool) -> Answer[Pinned]:
        await parts.pins.set(checkpoint_id, pinned=pinned)
        return answer(Pinned(success=True, id=checkpoint_id, pinned=pinned))

    return router


def _checkpoint_metrics(parts: Parts, run_id: str) -> list[str]:
    """By name: a run may have thousands of others."""
    series = parts.live.series
    names = {series.key(number).metric for number in series.of_run(run_id)}
    return sorted(name for name in names if name.startswith("checkpoint"))
