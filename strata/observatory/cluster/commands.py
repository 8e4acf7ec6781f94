"""A click on the page becomes a command to the coordinator. Nothing here changes state: it asks, waits until the
followed records show the change, and reports."""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message

from strata.protocol import convert
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.protocol.status import from_rpc_error
from strata.types.datasets import DatasetSpec
from strata.types.tasks import TaskSpec

__all__ = ["CoordinatorCommands"]

_DEADLINE_S = 10.0


class CoordinatorCommands:
    """Typed calls with one channel that is opened on first use. Who may call is decided before, by the HTTP guard.
    `shown` returns when the pages show an event of the coordinator: who has our answer finds the change there."""

    def __init__(self, address: str, token: str | None, shown: Callable[[int], Awaitable[None]]) -> None:
        self._address = address
        self._shown = shown
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._channel: grpc.aio.Channel | None = None

    async def stop(self) -> None:
        if self._channel is not None:
            await self._channel.close()

    async def submit_task(self, spec: TaskSpec, request_id: str) -> str:
        """The new task's id; the same for every retry with one request id."""
        ack: ct.TaskAck = await self._command(ControlStub, "SubmitTask", convert.to_task_spec(spec, request_id))
        return ack.task_id

    async def stop_task(self, task_id: str, reason: str, *, hurry: bool) -> None:
        await self._command(ControlStub, "StopTask", ct.TaskRef(task_id=task_id, reason=reason, hurry=hurry))

    async def resume_task(self, task_id: str, reason: str) -> int | None:
        """The step it goes on from; None when it has no checkpoint."""
        request = ct.TaskRef(task_id=task_id, reason=reason)
        ack: ct.TaskAck = await self._command(ControlStub, "ResumeTask", request)
        return ack.from_step if ack.HasField("from_step") else None

    async def drain_host(self, host: str, reason: str, deadline: float | None) -> None:
        """`deadline` is in Unix seconds; None: when all that runs there has left."""
        await self._command(ControlStub, "DrainAgent", ct.DrainRequest(host=host, reason=reason, deadline=deadline))

    async def undrain_host(self, host: str) -> None:
        await self._command(ControlStub, "DrainAgent", ct.DrainRequest(host=host, undo=True))

    async def register_dataset(self, spec: DatasetSpec) -> int:
        """How many shards it has."""
        ack: pb.DatasetAck = await self._command(CoordinatorStub, "RegisterDataset", convert.to_dataset_info(spec))
        return ack.total_shards

    async def shard_table(
        self, dataset_id: str, task_id: str | None, first_shard: int, num_shards: int
    ) -> ct.ShardTable:
        """Who reads which samples; of the newest group that reads the dataset when no task is named."""
        request = ct.ShardTableRequest(
            dataset_id=dataset_id, task_id=task_id, first_shard=first_shard, num_shards=num_shards
        )
        table: ct.ShardTable = await self._ask(ControlStub, "GetShardTable", request)
        return table

    async def _command(self, stub: type[Any], method: str, request: Message) -> Any:
        """Asks, and answers when the pages show what the command did."""
        ack = await self._ask(stub, method, request)
        await self._shown(ack.seq)
        return ack

    async def _ask(self, stub: type[Any], method: str, request: Message) -> Any:
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self._address)
        call = getattr(stub(self._channel), method)
        try:
            return await call(request, timeout=_DEADLINE_S, metadata=self._metadata)
        except grpc.RpcError as error:
            raise from_rpc_error(error, address=self._address) from None
