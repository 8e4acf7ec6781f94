"""A click on the page becomes a command to the coordinator. Nothing here changes state: it asks, waits until the
followed records show the change, and reports."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc
import grpc.aio

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
Answer = TypeVar("Answer")


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
        call: Any = self._control().SubmitTask
        ack: ct.TaskAck = await self._ask(call(convert.to_task_spec(spec, request_id), **self._options()))
        await self._shown(ack.seq)
        return ack.task_id

    async def stop_task(self, task_id: str, reason: str, *, hurry: bool) -> None:
        call: Any = self._control().StopTask
        request = ct.TaskRef(task_id=task_id, reason=reason, hurry=hurry)
        ack: ct.TaskAck = await self._ask(call(request, **self._options()))
        await self._shown(ack.seq)

    async def resume_task(self, task_id: str, reason: str) -> int | None:
        """The step it goes on from; None when it has no checkpoint."""
        call: Any = self._control().ResumeTask
        ack: ct.TaskAck = await self._ask(call(ct.TaskRef(task_id=task_id, reason=reason), **self._options()))
        await self._shown(ack.seq)
        return ack.from_step if ack.HasField("from_step") else None

    async def register_dataset(self, spec: DatasetSpec) -> int:
        """How many shards it has."""
        call: Any = CoordinatorStub(self._opened()).RegisterDataset
        ack: pb.DatasetAck = await self._ask(call(convert.to_dataset_info(spec), **self._options()))
        await self._shown(ack.seq)
        return ack.total_shards

    async def shard_table(
        self, dataset_id: str, task_id: str | None, first_shard: int, num_shards: int
    ) -> ct.ShardTable:
        """Who reads which samples; of the newest group that reads the dataset when no task is named."""
        call: Any = self._control().GetShardTable
        request = ct.ShardTableRequest(
            dataset_id=dataset_id, task_id=task_id, first_shard=first_shard, num_shards=num_shards
        )
        table: ct.ShardTable = await self._ask(call(request, **self._options()))
        return table

    def _control(self) -> ControlStub:
        return ControlStub(self._opened())

    def _opened(self) -> grpc.aio.Channel:
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self._address)
        return self._channel

    def _options(self) -> dict[str, Any]:
        return {"timeout": _DEADLINE_S, "metadata": self._metadata}

    async def _ask(self, call: Awaitable[Answer]) -> Answer:
        try:
            return await call
        except grpc.RpcError as error:
            raise from_rpc_error(error, address=self._address) from None
