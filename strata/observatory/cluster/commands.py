"""A click on the page becomes a command to the coordinator. Nothing here changes state: it asks, waits until the
followed records show the change, and reports."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message

from strata.client.channel import open_channel, token_metadata
from strata.client.leaders import Leaders
from strata.errors import DeadlineExceeded, Unavailable
from strata.protocol import convert
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.protocol.status import from_rpc_error
from strata.trust.access import Access
from strata.types.datasets import DatasetSpec
from strata.types.forks import ForkRequest
from strata.types.tasks import TaskSpec

__all__ = ["CoordinatorCommands"]

_DEADLINE_S = 10.0
_OF_SEVERAL_S = 3.0  # for each answer, where another coordinator may lead by then
_RETRIED_S = 0.5  # after a coordinator was restarted the first call may find its old connection
_PAUSE_S = 0.1
# One that comes back is found at once, not after gRPC's two minutes.
_OPTIONS = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 300))


class CoordinatorCommands:
    """Typed calls. Who may call is decided before, by the HTTP guard. All may be repeated without harm, and are when
    nobody answers or somebody else leads.
    `shown` returns when the pages show an event of the coordinator: who has our answer finds the change there."""

    def __init__(self, leaders: Leaders, access: Access, shown: Callable[[int], Awaitable[None]]) -> None:
        self._leaders = leaders
        self._shown = shown
        self._access = access
        self._metadata = token_metadata(access.token)
        self._channels: dict[str, grpc.aio.Channel] = {}

    async def stop(self) -> None:
        for channel in self._channels.values():
            await channel.close()

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

    async def fork_task(self, task_id: str, asked: ForkRequest, request_id: str) -> tuple[str, int]:
        """The new task, and the step of the checkpoint it begins with; the same for every retry."""
        request = convert.to_fork_request(task_id, asked, request_id)
        ack: ct.TaskAck = await self._command(ControlStub, "ForkTask", request)
        return ack.task_id, ack.from_step

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
        several = self._leaders.several
        give_up_at = time.monotonic() + (_DEADLINE_S if several else _RETRIED_S)
        while True:
            address = self._leaders.current
            call = getattr(stub(self._channel(address)), method)
            try:
                return await call(request, timeout=_OF_SEVERAL_S if several else _DEADLINE_S, metadata=self._metadata)
            except grpc.RpcError as error:
                failure = from_rpc_error(error, address=address)
            if not isinstance(failure, Unavailable | DeadlineExceeded) or time.monotonic() > give_up_at:
                raise failure
            self._leaders.leave(address)
            await asyncio.sleep(_PAUSE_S)

    def _channel(self, address: str) -> grpc.aio.Channel:
        if address not in self._channels:
            self._channels[address] = open_channel(address, self._access, _OPTIONS)
        return self._channels[address]
