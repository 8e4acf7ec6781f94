"""The course of a task: its attempts, and where its wall time went."""

from dataclasses import dataclass

from strata.types.faults import FaultKind
from strata.types.tasks import TaskStatus

__all__ = ["AttemptRow", "TaskTimeline", "TimeShares"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeShares:
    """Seconds of wall time by what they went into; they add up to `wall_s`. Null is what nobody measured."""

    wall_s: float
    starting_s: float
    recovering_s: float
    lost_s: float
    training_s: float | None
    barrier_s: float | None
    checkpoint_s: float | None
    section_s: float | None
    unmeasured_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One try, with `size` ranks. `status` is how it ended, or the task's while it lasts, and `ended_by` what ended it
    early; `working_at_ms` is its first point's time; `lost_steps` are done again by the next one."""

    attempt: int
    size: int | None
    status: TaskStatus
    ended_by: FaultKind | None
    reason: str | None
    started_at_ms: int
    working_at_ms: int | None
    ended_at_ms: int | None
    resume_step: int | None
    top_step: int | None
    lost_steps: int | None
    lost_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTimeline:
    """All attempts, and the share of wall time that went into training."""

    task_id: str
    attempts: list[AttemptRow]
    shares: TimeShares | None
    goodput_percent: float | None
