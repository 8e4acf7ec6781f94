"""Tasks: list, submit, stop, resume. A view never writes state, it sends a command."""

import uuid
from typing import Any

from fastapi import APIRouter, Header, Request
from pydantic import Field

from strata.errors import UnknownTask
from strata.observatory.answers.status import Success
from strata.observatory.answers.tasks import Task, TaskCreated, TaskResumed
from strata.observatory.answers.timeline import TaskCourse
from strata.observatory.cluster import views
from strata.observatory.http.asker import asker
from strata.observatory.http.body import Body, Int32
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer
from strata.types.tasks import GROW_AFTER_S, TaskSpec

__all__ = ["tasks_router"]


class CreateTask(Body):
    """A new task. `entrypoint` is the command of its ranks; without one the task's `type` says what they run. With
    `min_workers` it is elastic: it runs with as many ranks as there are slots for, up to `worker_count`, and takes more
    when they were free for `grow_after_s`. A rank that makes no step for `hang_timeout_s` is ended (0: none is; null:
    the limit is learned from its steps). With `exclude_stragglers` a host whose ranks hold up the others is left."""

    name: str
    type: str = "training"
    dataset_id: str | None = None
    worker_count: Int32 = 1
    config: dict[str, Any] = Field(default_factory=dict)
    entrypoint: list[str] = Field(default_factory=list)
    env: dict[str, str] = Field(default_factory=dict)
    launcher: str = "local"
    max_restarts: Int32 = 3
    working_dir: str = ""
    min_workers: Int32 = 0
    grow_after_s: float = GROW_AFTER_S
    spares: Int32 = 0
    hang_timeout_s: float | None = None
    exclude_stragglers: bool = False


def tasks_router(parts: Parts) -> APIRouter:
    """GETs from the read model, POSTs through the coordinator."""
    router = APIRouter(tags=["tasks"])

    @router.get("/api/tasks")
    async def tasks() -> Answer[list[Task]]:
        return Answer(parts.published.body("tasks"))

    @router.get("/api/tasks/{task_id}")
    async def task(task_id: str) -> Answer[Task]:
        for found in views.tasks(parts.published.followed):
            if found.id == task_id:
                return answer(found)
        raise UnknownTask(f"no task {task_id[:80]!r} is known")

    @router.get("/api/tasks/{task_id}/course")
    async def course(task_id: str) -> Answer[TaskCourse]:
        if task_id not in parts.published.followed.records.tasks:
            raise UnknownTask(f"no task {task_id[:80]!r} is known")
        return answer(await parts.timelines.view(task_id))

    @router.post("/api/tasks")
    async def submit(
        body: CreateTask, idempotency_key: str | None = Header(None, max_length=200)
    ) -> Answer[TaskCreated]:
        told = body.model_dump() | {"dataset_id": body.dataset_id or "", "entrypoint": tuple(body.entrypoint)}
        spec = TaskSpec(**told)
        task_id = await parts.commands.submit_task(spec, idempotency_key or uuid.uuid4().hex)
        return answer(TaskCreated(task_id=task_id))

    @router.post("/api/tasks/{task_id}/stop")
    async def stop(task_id: str, request: Request, now: bool = False) -> Answer[Success]:
        """`now`: give its ranks no time to save."""
        await parts.commands.stop_task(task_id, f"stopped by {asker(request)}", hurry=now)
        return answer(Success(success=True))

    @router.post("/api/tasks/{task_id}/resume")
    async def resume(task_id: str, request: Request) -> Answer[TaskResumed]:
        """Go on with a stopped or failed task from its last good checkpoint: same task, same run, fresh budgets."""
        step = await parts.commands.resume_task(task_id, f"resumed by {asker(request)}")
        return answer(TaskResumed(success=True, from_step=step))

    return router
