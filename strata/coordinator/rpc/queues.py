"""The calls of queue mode: a message in, a command, a message out."""

from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.engine.meter import Meter
from strata.coordinator.rpc.answer import Context, answered
from strata.coordinator.state import commands as c
from strata.coordinator.state.membership import Caller
from strata.errors import InvalidArgument
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import coordinator_pb2_grpc as pb_grpc
from strata.protocol.queues import from_progress, to_grant
from strata.types.queues import QueueGrant

__all__ = ["QueueCalls"]


class QueueCalls(pb_grpc.CoordinatorServicer):
    """A part of the public service; WorkersService completes it."""

    _coordinator: Coordinator
    meter: Meter

    @answered
    async def ClaimShard(self, request: pb.QueueClaim, context: Context) -> pb.QueueGrant:
        return await self._ask(
            c.ClaimShard(
                caller=_caller(request),
                dataset_id=request.dataset_id,
                epoch=request.epoch,
                held=from_progress(request.held),
            )
        )

    @answered
    async def CommitShards(self, request: pb.QueueCommit, context: Context) -> pb.QueueGrant:
        return await self._ask(
            c.CommitShards(
                caller=_caller(request),
                dataset_id=request.dataset_id,
                epoch=request.epoch,
                progress=from_progress(request.progress),
                step=request.step if request.HasField("step") else None,
            )
        )

    @answered
    async def RestoreQueue(self, request: pb.QueueRestore, context: Context) -> pb.QueueGrant:
        command = c.RestoreQueue(caller=_caller(request), dataset_id=request.dataset_id, step=request.step)
        return await self._ask(command)

    async def _ask(self, command: c.Command[QueueGrant]) -> pb.QueueGrant:
        return to_grant(await self._coordinator.ask(command))


def _caller(request: pb.QueueClaim | pb.QueueCommit | pb.QueueRestore) -> Caller:
    if request.generation < 0:
        raise InvalidArgument(f"generation is {request.generation}, it must be 0 or more")
    return Caller(worker_id=request.worker_id, incarnation=request.incarnation, generation=request.generation)
