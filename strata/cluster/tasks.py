"""A task as a record: what was asked, where it stands, which attempt, and why. The values of its env are not here."""

import json
from dataclasses import dataclass, field, replace

from strata.cluster.events import TaskChanged, TaskSubmitted
from strata.types.forks import TaskFork
from strata.types.plain import from_plain, shared
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus, incarnation_of, mask_env

__all__ = ["Task", "changed_task", "submitted_task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job that a user submitted."""

    task_id: str
    spec: TaskSpec
    submitted_at: float
    status: TaskStatus = TaskStatus.QUEUED
    attempt: int = 0
    reason: str = "waiting for slots"
    started_at: float | None = None
    completed_at: float | None = None
    course: TaskCourse = field(default_factory=TaskCourse)

    @property
    def size(self) -> int:
        """How many ranks the current attempt has; before the first one, how many are asked for."""
        return len(self.course.placement) or self.spec.worker_count

    def incarnation(self, rank: int) -> str:
        """Of the process that has this rank now."""
        return incarnation_of(self.task_id, self.attempt, rank, self.course.life(rank))


def submitted_task(event: TaskSubmitted) -> Task:
    config = json.loads(event.config_json) if event.config_json else {}
    env = mask_env(event.env)  # an older journal holds the values
    fork = from_plain(TaskFork, json.loads(event.fork_json)) if event.fork_json else None
    spec = TaskSpec(**{**shared(TaskSpec, event), "config": config, "env": env, "fork": fork})
    return Task(task_id=event.task_id, spec=spec, submitted_at=event.at)


def changed_task(task: Task, event: TaskChanged) -> Task:
    status = TaskStatus(event.status)
    starts = status is TaskStatus.RUNNING and task.started_at is None
    return replace(
        task,
        status=status,
        attempt=event.attempt,
        reason=event.reason,
        course=TaskCourse(**shared(TaskCourse, event)),
        started_at=event.at if starts else task.started_at,
        completed_at=event.at if status.final else None,
    )
