"""The cluster's collections, sent as the read model encoded them."""

from typing import Annotated

from fastapi import APIRouter, Query

from strata.observatory.answers.alerts import Alert
from strata.observatory.answers.checkpoints import Checkpoint
from strata.observatory.answers.cluster import COLLECTIONS, Barrier, Dashboard, SystemMetrics
from strata.observatory.answers.fleet import Fleet, FleetPage
from strata.observatory.answers.workers import Worker
from strata.observatory.cluster.fleet import FleetQuery, fleet_page
from strata.observatory.history.logbook import LogQuery
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer
from strata.observatory.records.encoding import encoded

__all__ = ["cluster_router"]

_DASHBOARD_LOGS = 100


def cluster_router(parts: Parts) -> APIRouter:
    """Most are bytes from a cache."""
    router = APIRouter(tags=["cluster"])

    @router.get("/api/workers")
    async def workers() -> Answer[list[Worker]]:
        return Answer(parts.published.body("workers"))

    @router.get("/api/fleet")
    async def fleet() -> Answer[Fleet]:
        """All workers as one picture."""
        return Answer(parts.published.body("fleet"))

    @router.get("/api/fleet/workers")
    async def fleet_workers(
        task_id: Annotated[str | None, Query(description="empty: those of no task")] = None,
        worker_id: str = "",
        rank: int | None = None,
        status: Annotated[str, Query(description="as in a worker's row, or suspect")] = "",
        q: Annotated[str, Query(max_length=200, description="looked for in id, host, status and task")] = "",
        offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Answer[FleetPage]:
        """Workers by task and rank, a page of them."""
        query = FleetQuery(task_id=task_id, worker_id=worker_id, status=status, text=q, rank=rank)
        return answer(fleet_page(parts.published.followed, query, offset, limit))

    @router.get("/api/checkpoints")
    async def checkpoints() -> Answer[list[Checkpoint]]:
        return Answer(parts.published.body("checkpoints"))

    @router.get("/api/barriers")
    async def barriers() -> Answer[list[Barrier]]:
        return Answer(parts.published.body("barriers"))

    @router.get("/api/metrics")
    async def metrics() -> Answer[SystemMetrics]:
        return Answer(parts.published.body("metrics"))

    @router.get("/api/alerts")
    async def alerts() -> Answer[list[Alert]]:
        return answer(parts.alerts.newest())

    @router.get("/api/dashboard")
    async def dashboard(
        sparse: Annotated[bool, Query(description="of a folded fleet no rows, as the stream")] = False,
    ) -> Answer[Dashboard]:
        logs = await parts.logs.search(LogQuery(limit=_DASHBOARD_LOGS))
        found = parts.published.sparse() if sparse else {name: parts.published.body(name) for name in COLLECTIONS}
        rest = {name: encoded(body) for name, body in found.items() if name != "fleet"}
        return answer(Dashboard(**rest, logs=logs))

    return router
