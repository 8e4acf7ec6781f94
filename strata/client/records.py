"""The cluster's records as the coordinator lists them."""

import json
from typing import TypeVar

from strata.client.channel import Channel
from strata.cluster.members import Agent, Worker
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.types.checkpoints import CheckpointInfo
from strata.types.plain import from_plain

__all__ = ["RecordsClient", "read_list"]

_Record = TypeVar("_Record")


def read_list(cls: type[_Record], reply: ct.RecordList) -> list[_Record]:
    return [from_plain(cls, values) for values in json.loads(reply.records_json)]


class RecordsClient:
    """Lists, the oldest first: of everything, or of one task (an empty id: of the plain workers)."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stub = channel.stub(ControlStub)

    def workers(self, task_id: str | None = None) -> list[Worker]:
        return read_list(Worker, self._channel.call(self._stub.ListWorkers, ct.ListRequest(task_id=task_id)))

    def agents(self) -> list[Agent]:
        return read_list(Agent, self._channel.call(self._stub.ListAgents, ct.ListRequest()))

    def checkpoints(self, task_id: str | None = None) -> list[CheckpointInfo]:
        request = ct.ListRequest(task_id=task_id)
        return read_list(CheckpointInfo, self._channel.call(self._stub.ListCheckpoints, request))
