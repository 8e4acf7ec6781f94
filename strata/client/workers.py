"""A worker's calls: joining and leaving, shards, where to go on. It beats and meets others on its tie."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from strata.client.channel import Channel
from strata.errors import Fenced
from strata.protocol.fields import from_message, to_message
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.sharding.lanes import LaneLayout
from strata.types.datasets import ShardAssignment
from strata.types.workers import WorkerSpec

__all__ = ["Member", "ResumePoint", "WorkersClient"]

_MAX_BEAT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A worker as the coordinator took it in. Every later call says its id and incarnation."""

    worker_id: str
    rank: int
    world_size: int
    heartbeat_interval_ms: int
    generation: int
    incarnation: str
    term: int

    @property
    def beat_s(self) -> float:
        """How often its tie should beat: a second at the most, whatever the lease allows."""
        return min(_MAX_BEAT_S, self.heartbeat_interval_ms / 1e3)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    """Where to go on: the newest committed checkpoint, if there is one, and this worker's shards."""

    has_checkpoint: bool
    checkpoint_id: str
    path: str
    step: int
    epoch: int
    assignments: tuple[ShardAssignment, ...]
    generation: int


class WorkersClient:
    """Calls of one worker. Not bound to a thread; every call blocks until it is answered."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stub = channel.stub(CoordinatorStub)

    def register(self, spec: WorkerSpec) -> Member:
        reply: pb.WorkerConfig = self._channel.call(self._stub.RegisterWorker, to_message(pb.WorkerInfo, spec))
        return from_message(Member, reply, worker_id=reply.assigned_id)

    def deregister(self, member: Member) -> None:
        """Leaves. Somebody who is out already has nothing to leave."""
        info = pb.WorkerInfo(worker_id=member.worker_id, incarnation=member.incarnation)
        try:
            self._channel.call(self._stub.DeregisterWorker, info)
        except Fenced:
            return

    def shards(self, member: Member, dataset_id: str, epoch: int) -> list[ShardAssignment]:
        """All shards of this worker in the epoch's order."""
        request = pb.ShardRequest(
            worker_id=member.worker_id, dataset_id=dataset_id, epoch=epoch, incarnation=member.incarnation
        )
        reply: pb.ShardAssignments = self._channel.call(self._stub.GetShardAssignments, request)
        return [from_message(ShardAssignment, shard) for shard in reply.assignments]

    def announce(self, member: Member, dataset_id: str, layout: LaneLayout, lanes: Sequence[int]) -> None:
        """Says which lanes of a dataset this worker reads. How it is cut is sent only where nobody has said so yet."""
        who = {"worker_id": member.worker_id, "incarnation": member.incarnation}
        request = to_message(pb.ReadingInfo, layout.spec, **who, dataset_id=dataset_id, lanes=lanes)
        reply: pb.ReadingAck = self._channel.call(self._stub.AnnounceReading, request)
        if not reply.known:
            request.sizes = zlib.compress(layout.sizes.astype("<i8").tobytes(), 6)
            self._channel.call(self._stub.AnnounceReading, request)

    def recover(self, worker_id: str, job_id: str = "", incarnation: str = "") -> ResumePoint:
        request = pb.RecoveryRequest(worker_id=worker_id, job_id=job_id, incarnation=incarnation)
        reply: pb.RecoveryResponse = self._channel.call(self._stub.GetLatestCheckpoint, request)
        return ResumePoint(
            has_checkpoint=reply.has_checkpoint,
            checkpoint_id=reply.latest_checkpoint.checkpoint_id,
            path=reply.latest_checkpoint.storage_path,
            step=reply.resume_step,
            epoch=reply.resume_epoch,
            assignments=tuple(from_message(ShardAssignment, shard) for shard in reply.shard_assignments),
            generation=reply.generation,
        )
