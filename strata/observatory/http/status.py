"""Is it up, is the coordinator reachable from here, and what does Prometheus read of both?"""

from fastapi import APIRouter
from starlette.responses import Response

from strata.observatory.answers.status import Health, Status
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer

__all__ = ["status_router"]

_OK = Health(status="ok")


def status_router(parts: Parts) -> APIRouter:
    """Health answers as long as the loop turns; status says what it is connected to."""
    router = APIRouter(tags=["status"])

    @router.get("/health")
    @router.get("/api/health")
    async def health() -> Answer[Health]:
        return answer(_OK)

    @router.get("/api/status")
    async def status() -> Answer[Status]:
        return answer(parts.published.status())

    @router.get("/metrics", include_in_schema=False)
    async def prometheus() -> Response:
        return Response(parts.exposition.text(), media_type="text/plain; version=0.0.4")

    return router
