"""Checkpoints as REST shows them."""

from dataclasses import dataclass
from typing import Any

from strata.observatory.answers.series import RunSeries
from strata.types.checkpoints import CheckpointStatus

__all__ = ["Checkpoint", "CheckpointRow", "Pinned", "RunCheckpoints"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint; `throughput` is in MB/s, `verified` null until somebody has read every byte (`reason`: damage),
    `pinned` null while its store cannot be read."""

    id: str
    step: int
    epoch: int
    size: int
    path: str
    created_at: int | None
    created_at_ms: int | None
    worker_id: str | None
    status: CheckpointStatus
    task_id: str | None
    duration_s: float | None
    throughput: float | None
    verified: bool | None
    verified_at: int | None
    verified_at_ms: int | None
    pinned: bool | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRow:
    """A point of a `checkpoint*` metric as its writer left it."""

    metric: str
    host: str
    rank: int
    device: int
    step: int
    value: float | None
    unit: str
    event_time: int
    event_time_ms: int
    tags: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCheckpoints:
    """The checkpoints of a run, and what it logged about them, newest first."""

    run_id: str
    checkpoints: list[Checkpoint]
    series: list[RunSeries]
    rows: list[CheckpointRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A pin that is durable."""

    success: bool
    id: str
    pinned: bool
