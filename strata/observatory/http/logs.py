"""Logs of everything, or of one task."""

from typing import Annotated

from fastapi import APIRouter, Query

from strata.observatory.answers.logs import LogEntry
from strata.observatory.history.logbook import LogQuery
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer

__all__ = ["logs_router"]

Limit = Annotated[int, Query(ge=1, le=10_000)]
Cursor = Annotated[str | None, Query(description="a log id, Unix seconds, ISO 8601, or ClickHouse's form of a time")]


def logs_router(parts: Parts) -> APIRouter:
    """Newest first; `before` with the last id of a page gives the next one."""
    router = APIRouter(tags=["logs"])

    @router.get("/api/logs")
    async def logs(
        limit: Limit = 100,
        level: str | None = None,
        source: str | None = None,
        task_id: str | None = None,
        worker_id: str | None = None,
        q: str | None = None,
        before: Cursor = None,
        after: Cursor = None,
    ) -> Answer[list[LogEntry]]:
        query = LogQuery(
            limit=limit,
            level=level,
            source=source,
            task_id=task_id,
            worker_id=worker_id,
            q=q,
            before=before,
            after=after,
        )
        return answer(await parts.logs.search(query))

    @router.get("/api/tasks/{task_id}/logs")
    async def task_logs(
        task_id: str,
        limit: Limit = 100,
        level: str | None = None,
        q: str | None = None,
        before: Cursor = None,
        after: Cursor = None,
    ) -> Answer[list[LogEntry]]:
        query = LogQuery(limit=limit, level=level, task_id=task_id, q=q, before=before, after=after)
        return answer(await parts.logs.search(query))

    return router
