"""How a barrier ended, as a record."""

from dataclasses import dataclass

from strata.cluster.events import BarrierBroke, BarrierReleased
from strata.types.barriers import BarrierRound
from strata.types.plain import shared

__all__ = ["BarrierEnd", "barrier_key", "ended_barrier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierEnd(BarrierRound):
    """One round of a barrier that is over: all members came, or it is `broken`, and `missing` and `reason` say why."""

    arrived: int
    total: int
    ended_at: float
    broken: bool = False
    missing: tuple[str, ...] = ()
    reason: str = ""

    @property
    def key(self) -> str:
        return barrier_key(self.task_id, self.barrier_id, self.step, self.round)


def barrier_key(task_id: str, barrier_id: str, step: int, number: int) -> str:
    """Names one round of one barrier."""
    return f"{task_id}/{barrier_id}/{step}/{number}"


def ended_barrier(event: BarrierReleased | BarrierBroke) -> BarrierEnd:
    arrived = len(event.worker_ids)
    told = {"total": arrived, **shared(BarrierEnd, event)}
    return BarrierEnd(**told, arrived=arrived, ended_at=event.at, broken=isinstance(event, BarrierBroke))
