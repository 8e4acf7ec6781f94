"""Tasks as REST shows them, and what commands to them answer."""

from dataclasses import dataclass
from typing import Any

from strata.types.tasks import TaskStatus

__all__ = ["Budget", "Fork", "Task", "TaskCreated", "TaskForked", "TaskResumed", "WarmSpares"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much of a task's restarts is used: failures of its own, and losses (kills from outside, lost hosts)."""

    failures: int
    max_failures: int
    failures_in_a_row: int
    max_failures_in_a_row: int
    losses: int
    max_losses: int
    losses_in_all: int
    window_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmSpares:
    """The interpreters that wait for a restart of its ranks, on all its hosts: how many, and what they hold."""

    wanted: int
    warm: int
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """Where a task began: with a checkpoint of another one. Of `skip`, steps of that one, first and last, it leaves out
    the batches; `changes` are the config values that it was given anew."""

    task_id: str
    step: int
    checkpoint_id: str
    skip: list[tuple[int, int]]
    changes: dict[str, Any]
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task; `progress` is in percent. It has `size` ranks now, of at least `min_workers` and at most `worker_count`;
    before its first attempt `size` is null. Each host should keep `spares` warm; `warm_spares` is null while none
    has any. `stuck_rank` is the rank that makes no step now, at `stuck_step`; `hang_timeout_s` says after how long such
    a rank is ended (0: never; null: learned from its steps). `slow_rank` is the straggler that is named now;
    `excluded_hosts` were left because of one, as `exclude_stragglers` asks. `fork` says where a forked one began."""

    id: str
    name: str
    type: str
    status: TaskStatus
    worker_ids: list[str]
    dataset_id: str | None
    submitted_at: int | None
    submitted_at_ms: int | None
    started_at: int | None
    started_at_ms: int | None
    completed_at: int | None
    completed_at_ms: int | None
    progress: float | None
    config: dict[str, Any]
    attempt: int
    reason: str
    worker_count: int
    min_workers: int
    size: int | None
    grow_after_s: float
    launcher: str
    max_restarts: int
    hang_timeout_s: float | None
    stuck_rank: int | None
    stuck_step: int | None
    exclude_stragglers: bool
    gpus_per_worker: int
    slow_rank: int | None
    excluded_hosts: list[str]
    budget: Budget
    spares: int
    warm_spares: WarmSpares | None
    fork: Fork | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCreated:
    """A task was accepted."""

    task_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskForked:
    """A new task was accepted, which begins with the checkpoint of `from_step`."""

    task_id: str
    from_step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResumed:
    """A task goes on; `from_step` is null when it has no checkpoint."""

    success: bool
    from_step: int | None
