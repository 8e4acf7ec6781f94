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
        return await _answer(
            LogQuery(
                limit=limit, level=level or None, source=source or None, task_id=task_id or None,
                worker_id=worker_id or None, q=q or None, before=before or None, after=after or None,
            )
        )  # fmt: skip

    @router.get("/api/tasks/{task_id}/logs")
    async def task_logs(
        task_id: str,
        limit: Limit = 100,
        level: str | None = None,
        q: str | None = None,
        before: Cursor = None,
        after: Cursor = None,
    ) -> Answer[list[LogEntry]]:
        query = LogQuery(
            limit=limit, level=level or None, task_id=task_id, q=q or None, before=before or None, after=after or None
        )
        return await _answer(query)

    async def _answer(query: LogQuery) -> Answer[list[LogEntry]]:
        return answer(await parts.logs.search(query))

    return router
