"""Tasks: submitting, stopping, and looking at them."""

import json
import uuid
from dataclasses import dataclass

from strata.client.channel import Channel
from strata.client.records import read_list
from strata.cluster.tasks import Task
from strata.protocol import convert
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.types.forks import ForkRequest
from strata.types.plain import from_plain
from strata.types.tasks import TaskSpec, TaskStatus

__all__ = ["TaskView", "TasksClient"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView(Task):
    """A task, and the step of its newest complete checkpoint."""

    saved_step: int | None = None


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

    def fork(self, task_id: str, asked: ForkRequest) -> tuple[str, int]:
        """The new task, and the step of the checkpoint that it begins with."""
        reply: ct.TaskAck = self._channel.call(
            self._stub.ForkTask, convert.to_fork_request(task_id, asked, uuid.uuid4().hex)
        )
        return reply.task_id, reply.from_step

    def list(self) -> list[TaskView]:
        reply: ct.RecordList = self._channel.call(self._stub.ListTasks, ct.ListRequest())
        return read_list(TaskView, reply)

    def get(self, task_id: str) -> TaskView:
        reply: ct.RecordReply = self._channel.call(self._stub.GetTask, ct.TaskRef(task_id=task_id))
        return from_plain(TaskView, json.loads(reply.record_json))
