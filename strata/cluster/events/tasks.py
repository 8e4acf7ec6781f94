"""Tasks: what users submitted, and what became of it."""

from dataclasses import dataclass

from strata.cluster.events.base import Event
from strata.types.tasks import TaskCourse, TaskFacts

__all__ = ["TaskChanged", "TaskSubmitted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSubmitted(TaskFacts, Event):
    """A user's job is in the queue."""

    task_id: str
    request_id: str
    config_json: str
    at: float
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
