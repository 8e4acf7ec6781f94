"""GET /api/runs/{run_id}/heat: one metric over ranks and steps, in as many rows as a page can draw."""

from typing import Annotated

from fastapi import APIRouter, Query

from strata.observatory.answers.heat import Heat
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer

__all__ = ["heat_router"]

_MAX_RANK = (1 << 63) - 1


def heat_router(parts: Parts) -> APIRouter:
    """Asked for again and again: who says what it has gets what is new."""
    router = APIRouter(tags=["runs"])

    @router.get("/api/runs/{run_id}/heat")
    async def heat(
        run_id: str,
        metric: Annotated[str, Query(description="empty: one that tells who is slow")] = "",
        rows: Annotated[int, Query(ge=1, le=1000)] = 200,
        first_rank: Annotated[int, Query(ge=-_MAX_RANK, le=_MAX_RANK)] = -_MAX_RANK,
        last_rank: Annotated[int, Query(ge=-_MAX_RANK, le=_MAX_RANK)] = _MAX_RANK,
        picture: Annotated[str, Query(description="of the last answer, with its version")] = "",
        version: Annotated[int, Query(ge=-1, le=_MAX_RANK)] = -1,
    ) -> Answer[Heat]:
        parts.edits.known(run_id)
        ranks = (first_rank, last_rank)
        return answer(await parts.heats.heat(run_id, metric, rows=rows, ranks=ranks, seen=(picture, version)))

    return router
