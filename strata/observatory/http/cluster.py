"""The cluster's collections, sent as the read model encoded them."""

from fastapi import APIRouter

from strata.observatory.answers.alerts import Alert
from strata.observatory.answers.checkpoints import Checkpoint
from strata.observatory.answers.cluster import COLLECTIONS, Barrier, Dashboard, SystemMetrics
from strata.observatory.answers.workers import Worker
from strata.observatory.history.logbook import LogQuery
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer
from strata.observatory.records.encoding import encoded

__all__ = ["cluster_router"]

_DASHBOARD_LOGS = 100


def cluster_router(parts: Parts) -> APIRouter:
    """GETs without parameters: bytes from a cache."""
    router = APIRouter(tags=["cluster"])

    @router.get("/api/workers")
    async def workers() -> Answer[list[Worker]]:
        return Answer(parts.published.body("workers"))

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
    async def dashboard() -> Answer[Dashboard]:
        logs = await parts.logs.search(LogQuery(limit=_DASHBOARD_LOGS))
        return answer(Dashboard(**{name: encoded(parts.published.body(name)) for name in COLLECTIONS}, logs=logs))

    return router
