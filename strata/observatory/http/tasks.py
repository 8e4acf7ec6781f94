"""Tasks: list, submit, stop, resume, fork. A view never writes state, it sends a command."""

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from pydantic import Field

from strata.errors import UnknownTask
from strata.observatory.answers.status import Success
from strata.observatory.answers.tasks import Task, TaskCreated, TaskForked, TaskResumed
from strata.observatory.answers.timeline import TaskTimeline
from strata.observatory.answers.why import Verdict
from strata.observatory.cluster import views
from strata.observatory.http.asker import asker
from strata.observatory.http.body import Body, Int32
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer
from strata.types.forks import ForkRequest
from strata.types.tasks import GROW_AFTER_S, TaskSpec

__all__ = ["tasks_router"]


class CreateTask(Body):
    """A new task. `entrypoint` is the command of its ranks; without one the task's `type` says what they run. With
    `min_workers` it is elastic: it runs with as many ranks as there are slots for, up to `worker_count`, and takes more
    when they were free for `grow_after_s`. A rank that makes no step for `hang_timeout_s` is ended (0: none is; null:
    the limit is learned from its steps). With `exclude_stragglers` a host whose ranks hold up the others is left. Each
    rank alone holds `gpus_per_worker` cards of its host."""

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
    gpus_per_worker: Int32 = 0


class ForkTask(Body):
    """`checkpoint_id`, or the newest good checkpoint at or before `step`, or the newest that holds none of `skip`:
    steps of the task, first and last, whose global batches are left out. `changes` are config values; `arguments` are
    added to its command."""

    step: int | None = None
    checkpoint_id: str = ""
    changes: dict[str, Any] = Field(default_factory=dict)
    skip: list[tuple[int, int]] = Field(default_factory=list)
    name: str = ""
    arguments: list[str] = Field(default_factory=list)


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
    async def course(task_id: str) -> Answer[TaskTimeline]:
        if task_id not in parts.published.followed.records.tasks:
            raise UnknownTask(f"no task {task_id[:80]!r} is known")
        return answer(await parts.timelines.view(task_id))

    @router.get("/api/tasks/{task_id}/why")
    async def why(task_id: str, at: Annotated[float | None, Query(allow_inf_nan=False)] = None) -> Answer[Verdict]:
        """Why it stands as it does, in one sentence. `at` (Unix seconds) asks for the interruption nearest to it."""
        return answer(await parts.verdicts.why(task_id, at))

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

    @router.post("/api/tasks/{task_id}/fork")
    async def fork(
        task_id: str, body: ForkTask, request: Request, idempotency_key: str | None = Header(None, max_length=200)
    ) -> Answer[TaskForked]:
        """A new task from a checkpoint of this one and its place in the data. This one is not touched."""
        told = body.model_dump() | {"skip": tuple(body.skip), "arguments": tuple(body.arguments)}
        asked = ForkRequest(**told, by=f"forked by {asker(request)}")
        made, step = await parts.commands.fork_task(task_id, asked, idempotency_key or uuid.uuid4().hex)
        return answer(TaskForked(task_id=made, from_step=step))

    return router
