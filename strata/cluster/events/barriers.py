"""Barriers: how they ended."""

from dataclasses import dataclass

from strata.cluster.events.base import Event

__all__ = ["BarrierBroke", "BarrierReleased"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierReleased(Event):
    """All members arrived, in this order. `request_ids` let a late retry get the same answer."""

    task_id: str
    barrier_id: str
    step: int
    round: int
    generation: int
    worker_ids: tuple[str, ...]
    request_ids: tuple[str, ...]
    absent: tuple[str, ...]
    created_at: float
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierBroke(Event):
    """It will not release: members died (`missing` names exactly them), or its deadline passed (`expired`)."""

    task_id: str
    barrier_id: str
    step: int
    round: int
    generation: int
    worker_ids: tuple[str, ...]
    request_ids: tuple[str, ...]
    missing: tuple[str, ...]
    reason: str
    expired: bool
    total: int
    created_at: float
    at: float
