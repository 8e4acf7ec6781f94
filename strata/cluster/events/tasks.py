"""Tasks: what users submitted, and what became of it."""

from dataclasses import dataclass

from strata.cluster.events.base import Event
from strata.types.tasks import GROW_AFTER_S, TaskCourse

__all__ = ["TaskChanged", "TaskSubmitted"]


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
    min_workers: int = 0
    grow_after_s: float = GROW_AFTER_S
    spares: int = 0
    hang_timeout_s: float | None = None
    exclude_stragglers: bool = False
    gpus_per_worker: int = 0
    saves_at_home: bool = False
    code: str = ""
    fork_json: str = ""  # of a fork: its TaskFork


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskChanged(TaskCourse, Event):
    """A task's status, attempt or reason changed. The rest is its course: where its ranks are, and what went wrong so
    far. An attempt is launched only after the event that names it is durable, so none is ever launched twice."""

    task_id: str
    status: str
    attempt: int
    reason: str
    at: float
