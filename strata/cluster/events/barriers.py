"""Barriers: how they ended."""

from dataclasses import dataclass

from strata.cluster.events.base import Event
from strata.types.barriers import BarrierRound

__all__ = ["BarrierBroke", "BarrierReleased"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierReleased(BarrierRound, Event):
    """All members arrived, in this order. `request_ids` let a late retry get the same answer: one for each of them, or
    a single one that all came with."""

    worker_ids: tuple[str, ...]
    request_ids: tuple[str, ...]
    absent: tuple[str, ...]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierBroke(BarrierRound, Event):
    """It will not release: members died (`missing` names exactly them), or its deadline passed (`expired`). Who had
    arrived is told as by a release."""

    worker_ids: tuple[str, ...]
    request_ids: tuple[str, ...]
    missing: tuple[str, ...]
    reason: str
    expired: bool
    total: int
    at: float
