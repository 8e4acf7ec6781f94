"""Saved dashboards: list, read, save, delete. A save says by If-Match which version it replaces."""

import logging
import re
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request

from strata.errors import InvalidArgument
from strata.observatory.answers.dashboards import DashboardDeleted, DashboardHead, Layout, SavedDashboard
from strata.observatory.history.dashboards import ANY
from strata.observatory.http.asker import asker
from strata.observatory.http.body import Body
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer

__all__ = ["dashboards_router"]

_log = logging.getLogger(__name__)
_TAG = re.compile(r'(?:W/)?"?(\d{1,18})"?')

IfMatch = Annotated[
    str | None, Header(description='the version that is replaced, as ETag gave it: `"3"`; none for a new dashboard')
]


class SaveDashboard(Body):
    """A dashboard as somebody wants it kept."""

    name: str
    project: str = ""
    layout: Layout


def dashboards_router(parts: Parts) -> APIRouter:
    """What people arranged; viewers read it, operators change it."""
    router = APIRouter(tags=["dashboards"])
    book = parts.dashboards

    @router.get("/api/dashboards")
    async def dashboards(
        project: Annotated[str | None, Query(description="only those of this project")] = None,
    ) -> Answer[list[DashboardHead]]:
        return answer(await book.list(project))

    @router.get("/api/dashboards/{dashboard_id}")
    async def dashboard(dashboard_id: str) -> Answer[SavedDashboard]:
        return _tagged(await book.get(dashboard_id))

    @router.put("/api/dashboards/{dashboard_id}")
    async def save(
        dashboard_id: str, body: SaveDashboard, request: Request, if_match: IfMatch = None
    ) -> Answer[SavedDashboard]:
        who = asker(request)
        wanted = SavedDashboard(id=dashboard_id, **dict(body), author=who, version=0, updated_at_ms=0)
        saved = await book.put(wanted, _version(if_match))
        _log.info("%s saved dashboard %s, version %d", who, dashboard_id, saved.version)
        return _tagged(saved)

    @router.delete("/api/dashboards/{dashboard_id}")
    async def delete(dashboard_id: str, request: Request, if_match: IfMatch = None) -> Answer[DashboardDeleted]:
        await book.delete(dashboard_id, _version(if_match), asker(request))
        _log.info("%s deleted dashboard %s", asker(request), dashboard_id)
        return answer(DashboardDeleted(success=True))

    return router


def _tagged(dashboard: SavedDashboard) -> Answer[SavedDashboard]:
    found = answer(dashboard)
    found.headers["etag"] = f'"{dashboard.version}"'
    return found


def _version(if_match: str | None) -> int | None:
    if if_match is None:
        return None
    if if_match.strip() == "*":
        return ANY
    tag = _TAG.fullmatch(if_match.strip())
    if tag is None:
        raise InvalidArgument(f"If-Match {if_match[:80]!r} is no version", hint='Send the ETag of the answer: "3".')
    return int(tag[1])
