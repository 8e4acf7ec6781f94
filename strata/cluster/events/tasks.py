"""Tasks: what users submitted, and what became of it."""

from dataclasses import dataclass

from strata.cluster.events.base import Event

__all__ = [
    "TaskChanged",
    "TaskSubmitted",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSubmitted(Event):
    """A user's job is in the queue."""

    task_id: str
    request_id: str
    name: str
    type: str
    dataset_id: str
    worker_count: int
    config_json: str
    entrypoint: tuple[str, ...]
    env: dict[str, str]
    launcher: str
    max_restarts: int
    working_dir: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChanged(Event):
    """A task's status, attempt or reason changed. The rest is its course: where its ranks are, and what went wrong so
    far. An attempt is launched only after the event that names it is durable, so none is ever launched twice."""

    task_id: str
    status: str
    attempt: int
    reason: str
    at: float
    placement: tuple[str, ...] = ()
    master_addr: str = ""
    master_port: int = 0
    gang_port: int = 0
    failures: int = 0
    preemptions: int = 0
    stalled: int = 0
    losses: int = 0
    losses_since: float = 0.0
    step: int = -1
    retry_at: float = 0.0
    stuck_rank: int | None = None
    stuck_step: int | None = None
    stop_at: int = -1
    hurry: bool = False
