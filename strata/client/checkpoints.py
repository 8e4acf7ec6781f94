"""The coordinator's part of a checkpoint: attempts, votes, decisions. Bytes never pass through here."""

from dataclasses import dataclass

from strata.client.channel import Channel
from strata.client.workers import Membership
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub

__all__ = ["AttemptTicket", "CheckpointsClient", "RankVote", "Ruling", "report_check"]

_HOUSEKEEPING_S = 5.0
_MAX_REASON = 500  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTicket:
    """One try to save one step, the same for every rank."""

    attempt: str
    step: int
    epoch: int
    generation: int
    deadline_s: float
    ranks: tuple[int, ...]
    committer: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankVote:
    """One rank's word that its bytes are durable."""

    rank: int
    manifest_key: str
    manifest_hash: str
    size_bytes: int
    duration_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """Where an attempt stands. `prepared` asks the committer to create COMMIT.json from the votes."""

    prepared: bool
    committed: bool
    reason: str
    missing: tuple[int, ...]
    votes: tuple[RankVote, ...]


class CheckpointsClient:
    """Checkpoint calls of one member."""

    def __init__(self, channel: Channel, member: Membership) -> None:
        self._channel = channel
        self._stub = channel.stub(CoordinatorStub)
        self._member = member

    def begin(self, step: int, epoch: int, storage_path: str, deadline_s: float) -> AttemptTicket:
        request = pb.CheckpointBegin(
            worker_id=self._member.worker_id,
            step=step,
            epoch=epoch,
            storage_path=storage_path,
            deadline_s=deadline_s,
            incarnation=self._member.incarnation,
            generation=self._member.generation,
        )
        reply: pb.CheckpointAttempt = self._channel.call(self._stub.BeginCheckpoint, request)
        return AttemptTicket(
            attempt=reply.attempt,
            step=reply.step,
            epoch=reply.epoch,
            generation=reply.generation,
            deadline_s=reply.deadline_s,
            ranks=tuple(reply.ranks),
            committer=reply.committer,
        )

    def vote(self, attempt: str, vote: RankVote) -> None:
        request = pb.CheckpointVote(
            worker_id=self._member.worker_id,
            attempt=attempt,
            rank=vote.rank,
            manifest_key=vote.manifest_key,
            manifest_hash=vote.manifest_hash,
            size_bytes=vote.size_bytes,
            duration_s=vote.duration_s,
            incarnation=self._member.incarnation,
            generation=self._member.generation,
        )
        self._channel.call(self._stub.VoteCheckpoint, request)

    def wait(self, attempt: str, timeout_s: float) -> Ruling:
        """Returns when the attempt is decided, or when it is this member's turn to commit."""
        request = pb.CheckpointAttempt(attempt=attempt, worker_id=self._member.worker_id)
        reply: pb.CheckpointDecision = self._channel.call(self._stub.AwaitCheckpoint, request, timeout_s=timeout_s)
        return Ruling(
            prepared=reply.verdict == pb.CheckpointDecision.PREPARED,
            committed=reply.verdict == pb.CheckpointDecision.COMMITTED,
            reason=reply.reason,
            missing=tuple(reply.missing),
            votes=tuple(
                RankVote(
                    rank=vote.rank,
                    manifest_key=vote.manifest_key,
                    manifest_hash=vote.manifest_hash,
                    size_bytes=vote.size_bytes,
                )
                for vote in sorted(reply.votes, key=lambda item: item.rank)
            ),
        )

    def commit(self, attempt: str, metadata: dict[str, str] | None = None) -> None:
        request = pb.CheckpointInfo(
            worker_id=self._member.worker_id,
            attempt=attempt,
            metadata=metadata or {},
            incarnation=self._member.incarnation,
        )
        self._channel.call(self._stub.CommitCheckpoint, request)

    def abort(self, attempt: str, reason: str) -> None:
        request = pb.CheckpointAbort(
            worker_id=self._member.worker_id,
            attempt=attempt,
            reason=reason[:_MAX_REASON],
            incarnation=self._member.incarnation,
            generation=self._member.generation,
        )
        self._channel.call(self._stub.AbortCheckpoint, request)

    def checked(self, checkpoint_id: str, step: int, storage_path: str, damage: str) -> None:
        """Every byte of it was read back. Tried once, as `removed`."""
        request = pb.CheckpointInfo(
            worker_id=self._member.worker_id,
            checkpoint_id=checkpoint_id,
            step=step,
            storage_path=storage_path,
            type=pb.CheckpointInfo.CHECKED,
            metadata={"damage": damage[:_MAX_REASON]},
            incarnation=self._member.incarnation,
        )
        self._channel.call(self._stub.NotifyCheckpoint, request, timeout_s=_HOUSEKEEPING_S, patience_s=0.0)

    def removed(self, step: int, storage_path: str, reason: str) -> None:
        """What was committed there is deleted from its store: the catalog shows it as complete no more. Tried once:
        nothing waits for it, and whoever deleted it says it again."""
        request = pb.CheckpointInfo(
            worker_id=self._member.worker_id,
            step=step,
            storage_path=storage_path,
            type=pb.CheckpointInfo.REMOVED,
            metadata={"reason": reason[:_MAX_REASON]},
            incarnation=self._member.incarnation,
        )
        self._channel.call(self._stub.NotifyCheckpoint, request, timeout_s=_HOUSEKEEPING_S, patience_s=0.0)


def report_check(channel: Channel, checkpoint_id: str, storage_path: str, damage: str) -> bool:
    """For people: somebody has read every byte of it. False when the cluster knows no such checkpoint."""
    request = ct.CheckpointCheck(checkpoint_id=checkpoint_id, storage_path=storage_path, damage=damage[:_MAX_REASON])
    reply: ct.CheckAck = channel.call(channel.stub(ControlStub).ReportCheck, request)
    return reply.known
