"""Tasks: what may be asked of them, and what becomes of them. Pure.

The values of a task's env are not here: the state is streamed and shown to many.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from strata.cluster.events import TaskChanged, TaskSubmitted
from strata.cluster.model import Cluster
from strata.cluster.tasks import Task
from strata.coordinator.state.commands import ChangeTask
from strata.coordinator.state.endings import is_going, plan_change
from strata.coordinator.state.now import Now
from strata.errors import Conflict, Fenced, InvalidArgument, UnknownTask
from strata.types.plain import shared, to_plain
from strata.types.tasks import (
    BUILTIN_TYPES,
    LAUNCHERS,
    TaskCourse,
    TaskSpec,
    TaskStatus,
    mask_env,
    worker_id_of,
)
from strata.types.workers import WorkerSpec

__all__ = ["Tasks", "check_runnable"]

_KEEP_REQUESTS = 10_000


class Tasks:
    """All tasks, by the cluster's records. A submission's request id makes its retry give the same task."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._unfinished: dict[str, None] = {}
        self.requests: dict[str, str] = {}

    @property
    def tasks(self) -> Mapping[str, Task]:
        """By id, oldest first."""
        return self._cluster.tasks

    def task(self, task_id: str) -> Task:
        found = self.tasks.get(task_id)
        if found is None:
            raise UnknownTask(f"no task {task_id!r} is known")
        return found

    def unfinished(self) -> list[Task]:
        """Those that wait or run, oldest first: a few of all that there ever were."""
        return [self.tasks[task_id] for task_id in self._unfinished]

    def submitted_as(self, request_id: str) -> str | None:
        return self.requests.get(request_id) if request_id else None

    def stop_step(self, task_id: str) -> int | None:
        """The step at which the ranks of a stopping or leaving task save and go together, when it is known."""
        task = self.tasks.get(task_id)
        if task is None or not is_going(task) or task.course.stop_at < 0:
            return None
        return task.course.stop_at

    def check_attempt(self, task_id: str, attempt: int) -> None:
        """Refuses a rank of an attempt that is over."""
        task = self.tasks.get(task_id)
        if task is None or task.status.final or task.attempt != attempt:
            now = "unknown here" if task is None else f"{task.status}, at attempt {task.attempt}"
            raise Fenced(f"fenced: attempt {attempt} of task {task_id} is over: the task is {now}")

    def check_member(self, spec: WorkerSpec) -> None:
        """Whoever joins a task that was started must be the process that the scheduler has started for this rank in the
        current attempt; and nobody else may have the name of one."""
        task = self.tasks.get(spec.task_id)
        if task is None or not task.attempt:
            self._check_name_is_free(spec.worker_id)
            return
        rank = _rank_of(task, spec.worker_id)
        expected = None if rank is None else task.incarnation(rank)
        if spec.incarnation != expected or task.status.final or spec.rank != rank:
            raise Fenced(
                f"fenced: {spec.worker_id} with incarnation {spec.incarnation or 'missing'!r} is no rank of task "
                f"{task.task_id}, which is {task.status} at attempt {task.attempt}",
                hint="Only processes that its agents start for the current attempt can join a task.",
            )

    def _check_name_is_free(self, worker_id: str) -> None:
        task = self.tasks.get(worker_id.rpartition("-")[0])
        if task is not None and not task.status.final and _rank_of(task, worker_id) is not None:
            raise Conflict(
                f"{worker_id} is the name of a rank of task {task.task_id}", hint="Give this worker an id of its own."
            )

    def plan_submit(self, task_id: str, spec: TaskSpec, request_id: str, now: Now) -> TaskSubmitted:
        if task_id in self.tasks:
            raise Conflict(f"task {task_id!r} exists already")
        return TaskSubmitted(
            **{**shared(TaskSubmitted, spec), "env": mask_env(spec.env)},
            task_id=task_id,
            request_id=request_id,
            config_json=json.dumps(dict(spec.config)),
            fork_json=json.dumps(to_plain(spec.fork)) if spec.fork else "",
            at=now.wall,
        )

    def plan_change(self, change: ChangeTask, now: Now) -> TaskChanged | None:
        """None when nothing would change; a task that has ended keeps its end."""
        task = self.task(change.task_id)
        before = (task.status, task.reason, task.attempt, task.course)
        if task.status.final or before == (change.status, change.reason, change.attempt, change.course):
            return None
        return _changed(change, now)

    def plan_stop(self, task_id: str, reason: str, now: Now, *, hurry: bool = False) -> TaskChanged | None:
        """A queued task stops at once, a running one has to be stopped by its agents first. In a `hurry` they give no
        time to save."""
        task = self.task(task_id)
        course = replace(task.course, hurry=task.course.hurry or hurry)
        if task.status is TaskStatus.STOPPING:
            return self.plan_change(plan_change(task, task.status, task.reason, course), now)
        status = TaskStatus.STOPPED if task.status is TaskStatus.QUEUED else TaskStatus.STOPPING
        return self.plan_change(plan_change(task, status, reason, course), now)

    def plan_resume(self, task_id: str, by: str, step: int, now: Now) -> TaskChanged:
        """A stopped or failed task goes back into the queue, with fresh budgets, to go on from the checkpoint of this
        step (-1: there is none). Its attempts are counted on, for what runs under an old number is void."""
        task = self.task(task_id)
        if task.status is TaskStatus.COMPLETED:
            raise Conflict(
                f"task {task_id!r} is completed: there is nothing to resume", hint="Submit it as a new task."
            )
        if not task.status.final:
            stopping = task.status is TaskStatus.STOPPING
            raise Conflict(
                f"task {task_id!r} is {task.status}: only a stopped or failed task can be resumed",
                hint=f"`strata resume {task_id}` waits for its end."
                if stopping
                else f"`strata tasks stop {task_id}` stops it first.",
            )
        course = TaskCourse(home=task.course.home)  # only there its checkpoints are seen
        where = f"from step {step}" if step >= 0 else "at step 0, for it has no checkpoint"
        return _changed(plan_change(task, TaskStatus.QUEUED, f"{by}, to go on {where}", course), now)

    # --- evolving: told before the cluster's records change

    def on_changed(self, event: TaskChanged) -> None:
        if TaskStatus(event.status).final:
            self._unfinished.pop(event.task_id, None)
        elif event.task_id not in self._unfinished:  # it is resumed, and has its old place in the queue
            known = {*self._unfinished, event.task_id}
            self._unfinished = {task_id: None for task_id in self.tasks if task_id in known}

    def load(self) -> None:
        """The records must be loaded before."""
        self._unfinished = {task_id: None for task_id, task in self.tasks.items() if not task.status.final}

    def on_submitted(self, event: TaskSubmitted) -> None:
        self._unfinished[event.task_id] = None
        if not event.request_id:
            return
        self.requests[event.request_id] = event.task_id
        if len(self.requests) > _KEEP_REQUESTS:
            del self.requests[next(iter(self.requests))]


def _changed(change: ChangeTask, now: Now) -> TaskChanged:
    told = {**shared(TaskChanged, change), **shared(TaskChanged, change.course), "status": change.status.value}
    return TaskChanged(**told, at=now.wall)


def _rank_of(task: Task, worker_id: str) -> int | None:
    """Which rank of the task has this name; None when none has."""
    rank = worker_id.rpartition("-")[2]
    known = rank.isdecimal() and len(rank) < 10 and int(rank) < task.size
    return int(rank) if known and worker_id == worker_id_of(task.task_id, int(rank)) else None


def check_runnable(spec: TaskSpec, task_types: tuple[str, ...]) -> None:
    """Refuses at once what could never start; too few slots is no such reason, agents may still come."""
    if not spec.entrypoint and spec.type not in task_types:
        raise InvalidArgument(
            f"task type {spec.type!r} is unknown",
            hint=f"Known: {', '.join(task_types)}. Add it under [task_types] in strata.toml, or give an entrypoint.",
        )
    if spec.launcher not in LAUNCHERS:
        raise InvalidArgument(f"launcher {spec.launcher!r} is unknown", hint=f"Known: {', '.join(LAUNCHERS)}.")
    if spec.type in BUILTIN_TYPES and not spec.entrypoint and not spec.dataset_id:
        raise InvalidArgument(
            f"a task of type {spec.type!r} needs a dataset_id", hint="Register the dataset first (POST /api/datasets)."
        )
