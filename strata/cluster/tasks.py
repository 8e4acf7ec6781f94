"""A task as a record: what was asked, where it stands, which attempt, and why. The values of its env are not here."""

import json
from dataclasses import dataclass, field, fields, replace

from strata.cluster.events import TaskChanged, TaskSubmitted
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus, mask_env

__all__ = ["Task", "changed_task", "submitted_task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One job."""

    task_id: str
    spec: TaskSpec
    submitted_at: float
    status: TaskStatus = TaskStatus.QUEUED
    attempt: int = 0
    reason: str = "waiting for slots"
    started_at: float | None = None
    completed_at: float | None = None
    course: TaskCourse = field(default_factory=TaskCourse)


def submitted_task(event: TaskSubmitted) -> Task:
    spec = TaskSpec(
        name=event.name,
        type=event.type,
        dataset_id=event.dataset_id,
        worker_count=event.worker_count,
        config=json.loads(event.config_json) if event.config_json else {},
        entrypoint=event.entrypoint,
        env=mask_env(event.env),  # an older journal holds the values
        launcher=event.launcher,
        max_restarts=event.max_restarts,
        working_dir=event.working_dir,
    )
    return Task(task_id=event.task_id, spec=spec, submitted_at=event.at)


def changed_task(task: Task, event: TaskChanged) -> Task:
    status = TaskStatus(event.status)
    starts = status is TaskStatus.RUNNING and task.started_at is None
    return replace(
        task,
        status=status,
        attempt=event.attempt,
        reason=event.reason,
        course=TaskCourse(**{item.name: getattr(event, item.name) for item in fields(TaskCourse)}),
        started_at=event.at if starts else task.started_at,
        completed_at=event.at if status.final else None,
    )
