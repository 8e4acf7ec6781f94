"""Barriers: a set of members that wait for each other, never a counter."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from strata.errors import InvalidArgument
from strata.types.names import check_name
from strata.types.workers import check_count

__all__ = ["BarrierArrival", "BarrierKey", "BarrierPolicy", "BarrierResult", "BarrierRound"]


class BarrierPolicy(StrEnum):
    """What the death of a member means for those who wait."""

    FAIL = "fail"
    SHRINK = "shrink"
    WAIT = "wait"


class BarrierKey(NamedTuple):
    """One barrier of a group. A new step, or a new arrival after the release, is a new round. A tuple, because every
    arrival hashes it several times."""

    task_id: str
    barrier_id: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierRound:
    """One round of a barrier, as the event of its end and the record of it name it."""

    task_id: str
    barrier_id: str
    step: int
    round: int
    generation: int
    created_at: float


@dataclass(slots=True, kw_only=True)  # not frozen: that doubles what it costs, and a thousand come in one tick
class BarrierArrival:
    """One member's arrival. `request_id` is the same for every retry; `expected` 0 means the whole group."""

    worker_id: str
    barrier_id: str
    step: int = 0
    expected: int = 0
    timeout_s: float | None = None
    policy: BarrierPolicy = BarrierPolicy.FAIL
    request_id: str = ""
    incarnation: str = ""
    generation: int = 0

    def __post_init__(self) -> None:
        check_name("worker_id", self.worker_id)
        check_name("barrier_id", self.barrier_id)
        if self.step < 0 or self.expected < 0 or self.generation < 0:
            check_count("step", self.step)
            check_count("expected_participants", self.expected)
            check_count("generation", self.generation)
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise InvalidArgument(f"timeout is {self.timeout_s} s, it must be more than 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierResult:
    """What a member is told at the release."""

    barrier_id: str
    participants: int
    arrival_order: int
    generation: int
    absent: tuple[str, ...] = ()
