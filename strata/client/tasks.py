"""Tasks: submitting, stopping, and looking at them; and the coordinator's state as a whole."""

import json
import uuid
from dataclasses import dataclass
from typing import Any

from strata.client.channel import Channel
from strata.errors import UnknownTask
from strata.protocol import convert
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.types.tasks import TaskSpec, TaskStatus

__all__ = ["StateView", "TaskView", "TasksClient", "fetch_state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """A task as the coordinator knows it. `stop_at` is the step at which its ranks leave when it is stopping (-1: not
    known), `saved_step` that of its newest complete checkpoint."""

    task_id: str
    name: str
    status: TaskStatus
    attempt: int
    reason: str
    worker_count: int
    submitted_at: float
    started_at: float | None
    completed_at: float | None
    failures: int
    preemptions: int
    stop_at: int = -1
    saved_step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateView:
    """One snapshot; the lists are the form of the coordinator's dump."""

    seq: int
    cluster_id: str
    term: int
    datasets: list[dict[str, Any]]
    workers: list[dict[str, Any]]
    agents: list[dict[str, Any]]
    checkpoints: list[dict[str, Any]]
    tasks: list[TaskView]


def fetch_state(channel: Channel) -> StateView:
    """The whole durable state at this moment."""
    reply: ct.StateSnapshot = channel.call(channel.stub(ControlStub).GetState, ct.GetStateRequest())
    state = json.loads(reply.state_json)
    saved = _saved_steps(state["checkpoints"])
    return StateView(
        seq=reply.seq,
        cluster_id=reply.cluster_id,
        term=reply.term,
        datasets=[item["spec"] for item in state["datasets"]],
        workers=state["workers"],
        agents=state["agents"],
        checkpoints=state["checkpoints"],
        tasks=[_task(values, saved.get(values["task_id"])) for values in state["tasks"]],
    )


def _saved_steps(checkpoints: list[dict[str, Any]]) -> dict[str, int]:
    """The newest complete checkpoint's step, by task."""
    saved: dict[str, int] = {}
    for record in checkpoints:
        if record["status"] == "completed":
            saved[record["task_id"]] = max(record["step"], saved.get(record["task_id"], 0))
    return saved


def _task(values: dict[str, Any], saved_step: int | None) -> TaskView:
    return TaskView(
        task_id=values["task_id"],
        name=values["spec"]["name"],
        status=TaskStatus(values["status"]),
        attempt=values["attempt"],
        reason=values["reason"],
        worker_count=values["spec"]["worker_count"],
        submitted_at=values["submitted_at"],
        started_at=values["started_at"],
        completed_at=values["completed_at"],
        failures=values["course"]["failures"],
        preemptions=values["course"]["preemptions"],
        stop_at=values["course"]["stop_at"],
        saved_step=saved_step,
    )


class TasksClient:
    """Task calls. A submission that is repeated after a lost answer gives the same task."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stub = channel.stub(ControlStub)

    def submit(self, spec: TaskSpec) -> str:
        reply: ct.TaskAck = self._channel.call(self._stub.SubmitTask, convert.to_task_spec(spec, uuid.uuid4().hex))
        return reply.task_id

    def stop(self, task_id: str, reason: str = "", *, hurry: bool = False) -> TaskStatus:
        """In a `hurry` its ranks get no time to save."""
        request = ct.TaskRef(task_id=task_id, reason=reason, hurry=hurry)
        reply: ct.TaskAck = self._channel.call(self._stub.StopTask, request)
        return TaskStatus(reply.status)

    def resume(self, task_id: str, reason: str = "") -> int | None:
        """The step it goes on from, None without a checkpoint. Raises Conflict for one that runs or is completed."""
        request = ct.TaskRef(task_id=task_id, reason=reason)
        reply: ct.TaskAck = self._channel.call(self._stub.ResumeTask, request)
        return reply.from_step if reply.HasField("from_step") else None

    def list(self) -> list[TaskView]:
        return fetch_state(self._channel).tasks

    def get(self, task_id: str) -> TaskView:
        for task in self.list():
            if task.task_id == task_id:
                return task
        raise UnknownTask(f"no task {task_id!r} is known")
