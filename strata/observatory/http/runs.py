"""Runs and their series, at the root and below /api."""

import logging
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from pydantic import Field

from strata.errors import InvalidArgument
from strata.observatory.answers.runs import (
    PointsAccepted,
    RunDeleted,
    RunInfo,
    RunMetrics,
    RunsChanged,
    RunSummary,
    RunTable,
    TextEntry,
)
from strata.observatory.http.asker import asker
from strata.observatory.http.body import Body
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer
from strata.observatory.ingest.points import BODY_SCHEMA, from_json
from strata.observatory.records.times import parse_time
from strata.observatory.search.table import RunSearch
from strata.observatory.store.base import own_rows
from strata.observatory.store.sql import text_rows
from strata.observatory.store.superseded import Which
from strata.types.metrics import MAX_STEP
from strata.types.names import check_name

__all__ = ["Attempts", "Inherited", "runs_router"]

_log = logging.getLogger(__name__)

Time = Annotated[str | None, Query(description="Unix seconds, ISO 8601, or ClickHouse's form; UTC unless it says so")]
_POINTS_BODY = {"requestBody": {"required": True, "content": {"application/json": {"schema": BODY_SCHEMA}}}}
Attempts = Annotated[
    Which, Query(description="of steps that were done again: the newest attempt's points, the superseded ones, or all")
]
Inherited = Annotated[
    bool, Query(description="of a fork: also what the runs measured from which it comes, up to where it began")
]
RunFilter = Annotated[str | None, Query(description="`lr > 1e-4 and tag:ablation`; docs/runs.md has the language")]
Sort = Annotated[str, Query(description="`started`, `group`, `config.lr`, `loss.min`: whatever a filter may name")]
Step = Annotated[int | None, Query(ge=0, le=MAX_STEP)]
Rank = Annotated[int | None, Query(ge=0, le=2**32 - 1, description="of this rank alone")]


class ChangeRun(Body):
    """What people may write about a run; what is left out stays as it is."""

    name: str | None = None
    notes: str | None = None
    group: str | None = None
    tags: list[str] | None = None
    archived: bool | None = None


class ChangeRuns(Body):
    """The same change for many runs: tags come and go one by one, what is left out stays as it is."""

    run_ids: Annotated[list[str], Field(min_length=1, max_length=10_000)]
    add_tags: list[str] = Field(default_factory=list)
    remove_tags: list[str] = Field(default_factory=list)
    group: str | None = None
    archived: bool | None = None


def runs_router(parts: Parts) -> APIRouter:
    """What there is, what it measured, and the door for more."""
    router = APIRouter(tags=["runs"])

    search = RunSearch(parts.live)

    @router.get("/runs")
    @router.get("/api/runs")
    async def runs(
        filter: RunFilter = None,  # noqa: A002 - the query's word
        sort: Sort = "",
        descending: bool = True,
        limit: Annotated[int | None, Query(ge=0)] = None,
    ) -> Answer[list[RunInfo]]:
        parts.live.tick()  # who has just sent points finds the run
        if filter is None and not sort:
            return answer(parts.live.runs.all()[:limit])
        return answer(search.find(filter or "", sort, descending=descending, limit=limit))

    @router.get("/api/runs/table")
    async def table(
        filter: RunFilter = None,  # noqa: A002 - the query's word
        sort: Sort = "",
        descending: bool = True,
        column: Annotated[list[str] | None, Query(description="as in a filter; repeat it for more")] = None,
        limit: Annotated[int, Query(ge=0, le=10_000)] = 300,
    ) -> Answer[RunTable]:
        parts.live.tick()
        return answer(search.table(filter or "", sort, column or [], descending=descending, limit=limit))

    @router.get("/api/runs/{run_id}/info")
    async def info(run_id: str) -> Answer[RunInfo]:
        """One row of GET /api/runs."""
        parts.live.tick()
        return answer(parts.edits.known(run_id))

    @router.get("/api/runs/{run_id}/summary")
    async def summary(run_id: str) -> Answer[RunSummary]:
        parts.live.tick()
        parts.edits.known(run_id)
        summaries = parts.live.summaries
        return answer(RunSummary(run_id=run_id, metrics=summaries.metrics(run_id), values=summaries.said(run_id)))

    @router.get("/api/runs/{run_id}/texts")
    async def texts(
        run_id: str, metric: str | None = None, limit: Annotated[int, Query(ge=1, le=10_000)] = 100
    ) -> Answer[list[TextEntry]]:
        parts.edits.known(run_id)
        sql, parameters = text_rows({"runs": [run_id], "metric": metric}, limit)
        return answer([TextEntry(**row) for row in await own_rows(parts.store, sql, parameters)])

    @router.patch("/api/runs")
    async def change_many(body: ChangeRuns, request: Request) -> Answer[RunsChanged]:
        changes: dict[str, dict[str, Any]] = {}
        for run_id in body.run_ids:
            info = parts.edits.known(run_id)
            changes[run_id] = {
                name: value for name in ("group", "archived") if (value := getattr(body, name)) is not None
            }
            if body.add_tags or body.remove_tags:
                tags = dict.fromkeys([*info.tags, *body.add_tags])
                changes[run_id]["tags"] = [tag for tag in tags if tag not in body.remove_tags]
        await parts.edits.change_many(changes)
        _log.info("%s changed %d runs, %s first", asker(request), len(changes), body.run_ids[0])
        return answer(RunsChanged(changed=len(changes)))

    @router.patch("/api/runs/{run_id}")
    async def change(run_id: str, body: ChangeRun, request: Request) -> Answer[RunInfo]:
        changes = {name: value for name, value in body.model_dump().items() if value is not None}
        info = await parts.edits.change(run_id, changes)
        _log.info("%s changed %s of run %s", asker(request), ", ".join(changes), run_id)
        return answer(info)

    @router.delete("/api/runs/{run_id}")
    async def delete(run_id: str) -> Answer[RunDeleted]:
        info = parts.live.runs.info(run_id)
        task = parts.published.followed.records.tasks.get((info.task_id if info else None) or run_id)
        rows_removed = await parts.edits.delete(run_id, task.status if task else None)
        return answer(RunDeleted(success=True, rows_removed=rows_removed))

    @router.get("/metrics/{run_id}")
    @router.get("/api/metrics/{run_id}")
    async def metrics(
        run_id: str,
        metric: str | None = None,
        rank: Rank = None,
        from_step: Step = None,
        to_step: Step = None,
        from_time: Time = None,
        to_time: Time = None,
        points: Annotated[int, Query(ge=2, le=2000)] = 2000,
        attempts: Attempts = "newest",
        inherited: Inherited = False,
    ) -> Answer[RunMetrics]:
        where = {
            "metric": metric,
            "rank": rank,
            "from_step": from_step,
            "to_step": to_step,
            "from_ms": _ms("from_time", from_time),
            "to_ms": _ms("to_time", to_time),
        }
        gone = run_id in parts.live.runs.deleted
        found = [] if gone else await parts.curves.read(run_id, where, points, attempts)
        if not found:
            parts.edits.known(run_id)
        if inherited and not gone:
            found = [*await parts.curves.inherited(run_id, where, points), *found]
        return answer(RunMetrics(run_id=run_id, series=found))

    @router.post("/api/runs/{run_id}/points", openapi_extra=_POINTS_BODY)
    async def add_points(run_id: str, request: Request) -> Answer[PointsAccepted]:
        check_name("run_id", run_id)
        parts.edits.check_open(run_id)
        message = from_json(run_id, await _body(request), round(parts.clock.wall() * 1000))
        accepted = await parts.intake.accept(message)
        return answer(PointsAccepted(accepted=accepted.points))

    return router


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise InvalidArgument(f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise InvalidArgument("the body must be a JSON object")
    return body


def _ms(name: str, given: str | None) -> int | None:
    return None if given is None else round(parse_time(name, given) * 1000)
