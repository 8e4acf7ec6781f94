"""Media of runs: names, steps, what was logged, and the bytes of files.

A file was made by somebody's script, and a browser of the owner opens it: whatever it is, it runs in no origin of ours,
reaches no network and is never taken for another type than the one that is said here.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from strata.errors import NotFound
from strata.observatory.answers.media import MediaEntries, MediaName, MediaSteps, RunMedia
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer
from strata.types.media import content_type
from strata.types.metrics import MAX_STEP

__all__ = ["media_router"]

# Scripts of a plot may run, in a document without an origin that can load nothing from anywhere.
_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; media-src data: blob:; font-src data:; frame-ancestors 'self'"
)
_HEADERS = {
    "cache-control": "private, max-age=31536000, immutable",  # its name is its content
    "content-security-policy": _POLICY,
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "SAMEORIGIN",
}
_BINARY: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}
Step = Annotated[int | None, Query(ge=0, le=MAX_STEP)]
Rank = Annotated[int, Query(ge=0, lt=2**32)]


def media_router(parts: Parts) -> APIRouter:
    router = APIRouter(tags=["runs"])

    @router.get("/api/runs/{run_id}/media")
    async def media(
        run_id: str,
        search: Annotated[str, Query(description="a part of the name")] = "",
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
    ) -> Answer[RunMedia]:
        parts.edits.known(run_id)
        return answer(await parts.media.keys(run_id, search, limit))

    @router.get("/api/runs/{run_id}/media/steps")
    async def steps(run_id: str, metric: str, kind: str, rank: Rank = 0) -> Answer[MediaSteps]:
        parts.edits.known(run_id)
        return answer(await parts.media.steps(MediaName(run_id=run_id, metric=metric, kind=kind, rank=rank)))

    @router.get("/api/runs/{run_id}/media/entries")
    async def entries(
        run_id: str,
        metric: str,
        kind: str,
        rank: Rank = 0,
        from_step: Step = None,
        to_step: Step = None,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    ) -> Answer[MediaEntries]:
        parts.edits.known(run_id)
        name = MediaName(run_id=run_id, metric=metric, kind=kind, rank=rank)
        return answer(await parts.media.entries(name, from_step, to_step, limit))

    @router.get("/api/runs/{run_id}/files/{name}", response_class=Response, responses=_BINARY)
    async def file(run_id: str, name: str) -> Response:
        if run_id in parts.live.runs.deleted:
            raise NotFound(f"there is no run {run_id[:80]!r}", hint="GET /runs lists them.")
        return Response(await parts.media.file(run_id, name), media_type=content_type(name), headers=_HEADERS)

    return router
