"""The cluster as a whole: barriers, the coordinator's figures, and all collections at once."""

from dataclasses import dataclass
from typing import Literal, get_args

from typing_extensions import TypedDict

from strata.observatory.answers.checkpoints import Checkpoint
from strata.observatory.answers.datasets import Dataset
from strata.observatory.answers.fleet import Fleet
from strata.observatory.answers.logs import LogEntry
from strata.observatory.answers.status import Status
from strata.observatory.answers.tasks import Task
from strata.observatory.answers.workers import Worker

__all__ = ["COLLECTIONS", "Barrier", "ClusterState", "Collection", "Dashboard", "SystemMetrics"]

Collection = Literal["workers", "fleet", "tasks", "datasets", "checkpoints", "barriers", "metrics", "coordinator"]
COLLECTIONS: tuple[Collection, ...] = get_args(Collection)


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """A barrier that waits, or how it ended; `missing` are worker ids."""

    id: str
    name: str
    arrived: int
    total: int
    status: Literal["waiting", "complete", "broken"]
    created_at: int | None
    created_at_ms: int | None
    missing: list[str]
    reason: str | None
    step: int
    task_id: str | None
    wait_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemMetrics:
    """Measured by the coordinator over its sliding window: MB/s, requests per second, milliseconds. Null is what
    nobody measured."""

    checkpoint_throughput: float | None
    coordinator_rps: float | None
    active_workers: int
    total_workers: int
    barrier_latency_p99: float | None
    shard_assignment_time: float | None
    barrier_wait_p99: float | None
    journal_commit_p99: float | None
    loop_lag: float | None
    window_s: float | None


class ClusterState(TypedDict, total=False):
    """Collections that changed, each whole; what is left out is as it was. While the fleet is `folded` there are no
    `workers`, and tasks have no `worker_ids`."""

    workers: list[Worker]
    fleet: Fleet
    tasks: list[Task]
    datasets: list[Dataset]
    checkpoints: list[Checkpoint]
    barriers: list[Barrier]
    metrics: SystemMetrics
    coordinator: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """Every collection but the fleet, and the newest log lines."""

    coordinator: Status
    workers: list[Worker]
    datasets: list[Dataset]
    checkpoints: list[Checkpoint]
    barriers: list[Barrier]
    metrics: SystemMetrics
    tasks: list[Task]
    logs: list[LogEntry]
