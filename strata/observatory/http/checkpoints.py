"""Checkpoints that people keep: a pin in the checkpoint's own store, which retention honours."""

from fastapi import APIRouter

from strata.observatory.answers.checkpoints import Pinned
from strata.observatory.http.body import Body
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer

__all__ = ["checkpoints_router"]


class Pin(Body):
    """Without a body, a pin is set."""

    pinned: bool = True


def checkpoints_router(parts: Parts) -> APIRouter:
    """The answer comes when the pin is durable; the list of checkpoints shows it from then on."""
    router = APIRouter(tags=["checkpoints"])

    @router.post("/api/checkpoints/{checkpoint_id}/pin")
    async def pin(checkpoint_id: str, body: Pin | None = None) -> Answer[Pinned]:
        return await _set(checkpoint_id, pinned=body is None or body.pinned)

    @router.post("/api/checkpoints/{checkpoint_id}/unpin")
    async def unpin(checkpoint_id: str) -> Answer[Pinned]:
        return await _set(checkpoint_id, pinned=False)

    async def _set(checkpoint_id: str, *, pinned: bool) -> Answer[Pinned]:
        await parts.pins.set(checkpoint_id, pinned=pinned)
        return answer(Pinned(success=True, id=checkpoint_id, pinned=pinned))

    return router
