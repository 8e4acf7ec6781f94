"""Hosts: which there are, and which of them go away. A view never writes state, it sends a command."""

import time
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from strata.observatory.answers.hosts import Host
from strata.observatory.answers.status import Success
from strata.observatory.cluster import views
from strata.observatory.http.body import Body
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer

__all__ = ["hosts_router"]

_MAX_DEADLINE_S = 30 * 86_400.0


class Drain(Body):
    """A host goes away in `deadline_s` seconds; without one, when all that runs there has left."""

    deadline_s: Annotated[float, Field(gt=0, le=_MAX_DEADLINE_S, allow_inf_nan=False)] | None = None
    reason: Annotated[str, Field(max_length=500)] = ""


def hosts_router(parts: Parts) -> APIRouter:
    """A host is named by its agent's id, or by its own name where it has one agent."""
    router = APIRouter(tags=["hosts"])

    @router.get("/api/hosts")
    async def hosts() -> Answer[list[Host]]:
        return answer(views.hosts(parts.published.followed))

    @router.post("/api/hosts/{host}/drain")
    async def drain(host: str, body: Drain) -> Answer[Success]:
        """Place nothing more there; what runs there saves at an agreed step and goes on elsewhere."""
        deadline = None if body.deadline_s is None else time.time() + body.deadline_s
        await parts.commands.drain_host(host, body.reason or "drained from the dashboard", deadline)
        return answer(Success(success=True))

    @router.post("/api/hosts/{host}/undrain")
    async def undrain(host: str) -> Answer[Success]:
        """The host stays after all."""
        await parts.commands.undrain_host(host)
        return answer(Success(success=True))

    return router
