"""Queue mode at the coordinator: the calls of one worker that takes shards as it gets done with them."""

from collections.abc import Sequence
from typing import Any

from strata.client.channel import Channel
from strata.client.workers import Member
from strata.protocol.convert import from_grant, to_progress
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.types.queues import LeaseProgress, QueueGrant

__all__ = ["QueuesClient"]


class QueuesClient:
    """Every call may be repeated without harm: an answer that was lost is given again.

    Ranks of a task go on or stop together, so their calls carry the generation. A plain worker outlives its peers: it
    is fenced by its incarnation and by its leases alone.
    """

    def __init__(self, channel: Channel, member: Member, *, gang: bool) -> None:
        self._channel = channel
        self._stub = channel.stub(CoordinatorStub)
        self._member = member
        self._generation = member.generation if gang else 0

    def claim(self, dataset_id: str, epoch: int, held: Sequence[LeaseProgress] = ()) -> QueueGrant:
        """The next shard, or what to do instead. `held` are all leases of this worker and how far it has read them."""
        request = pb.QueueClaim(dataset_id=dataset_id, epoch=epoch, held=to_progress(held))
        return self._ask(self._stub.ClaimShard, request)

    def commit(
        self, dataset_id: str, epoch: int, progress: Sequence[LeaseProgress], step: int | None = None
    ) -> QueueGrant:
        """These rows count: now, or with `step` when the checkpoint of that step is committed."""
        request = pb.QueueCommit(dataset_id=dataset_id, epoch=epoch, progress=to_progress(progress), step=step)
        return self._ask(self._stub.CommitShards, request)

    def restore(self, dataset_id: str, step: int) -> QueueGrant:
        """The group goes on from the checkpoint of `step`; -1 = it has none."""
        return self._ask(self._stub.RestoreQueue, pb.QueueRestore(dataset_id=dataset_id, step=step))

    def _ask(self, method: Any, request: Any) -> QueueGrant:
        request.worker_id, request.incarnation = self._member.worker_id, self._member.incarnation
        request.generation = self._generation
        return from_grant(self._channel.call(method, request))
