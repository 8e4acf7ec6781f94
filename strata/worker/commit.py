"""The coordinator as the one who decides that a checkpoint of many ranks is complete. Bytes never pass through it."""

import time
from collections.abc import Callable
from typing import Any

from strata.checkpoint.commit import SaveAttempt, SaveOutcome, Vote, raise_if_given_up
from strata.checkpoint.layout import step_path
from strata.client.channel import Channel
from strata.client.workers import Member
from strata.protocol.fields import from_message
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.types.checkpoints import CheckpointInfo, checkpoint_id_of

__all__ = ["CoordinatorCommit"]

_MARGIN_S = 30.0
_HOUSEKEEPING_S = 5.0
_MAX_REASON = 500  # characters


class CoordinatorCommit:
    """Implements strata.checkpoint's CommitCoordinator and KeepsCatalog for one rank."""

    def __init__(
        self, channel: Channel, member: Callable[[], Member], storage_path: str, deadline_s: float = 600.0
    ) -> None:
        self._channel = channel
        self._stub = channel.stub(CoordinatorStub)
        self._member = member  # asked each time: its generation changes when another rank is replaced in place
        self._storage_path = storage_path
        self._deadline_s = deadline_s
        self._begun: dict[str, float] = {}  # attempt → when this rank began to write
        self._held: frozenset[int] | None = None

    def begin(self, rank: int, step: int, epoch: int) -> SaveAttempt:
        request = pb.CheckpointBegin(
            generation=self._member().generation,
            step=step,
            epoch=epoch,
            storage_path=step_path(self._storage_path, step),
            deadline_s=self._deadline_s,
            counts_ranks=True,
        )
        reply: pb.CheckpointAttempt = self._call(self._stub.BeginCheckpoint, request)
        self._begun = {reply.attempt: time.monotonic()}
        ranks = tuple(range(reply.num_ranks)) or tuple(reply.ranks)
        return from_message(SaveAttempt, reply, epoch=epoch, ranks=ranks)

    def vote(self, attempt: SaveAttempt, vote: Vote) -> None:
        request = pb.CheckpointVote(
            generation=self._member().generation,
            attempt=attempt.attempt,
            rank=vote.rank,
            manifest_key=vote.key,
            manifest_hash=vote.digest,
            size_bytes=vote.size,
            duration_s=time.monotonic() - self._begun.get(attempt.attempt, time.monotonic()),
        )
        self._call(self._stub.VoteCheckpoint, request)

    def wait_votes(self, attempt: SaveAttempt) -> tuple[Vote, ...]:
        decision = self._await(attempt)
        if decision.verdict != pb.CheckpointDecision.PREPARED:
            raise_if_given_up(attempt.step, _outcome(decision))
        return _votes(decision)

    def publish(self, attempt: SaveAttempt, info: CheckpointInfo) -> None:
        self._held = None  # what was known may be old
        ack: pb.CheckpointAck = self._call(self._stub.CommitCheckpoint, pb.CheckpointInfo(attempt=attempt.attempt))
        self._held = frozenset(ack.held_steps)

    def held(self) -> frozenset[int] | None:
        return self._held

    def wait_outcome(self, attempt: SaveAttempt) -> SaveOutcome:
        decision = self._await(attempt)
        if decision.verdict == pb.CheckpointDecision.PREPARED:
            return SaveOutcome(
                committed=False, reason="it was lost before COMMIT.json was reported", votes=_votes(decision)
            )
        return _outcome(decision)

    def abort(self, attempt: SaveAttempt, rank: int, reason: str) -> None:
        request = pb.CheckpointAbort(
            generation=self._member().generation, attempt=attempt.attempt, reason=reason[:_MAX_REASON]
        )
        self._call(self._stub.AbortCheckpoint, request)

    def removed(self, step: int, reason: str) -> None:
        self._notify(step, pb.CheckpointInfo.REMOVED, {"reason": reason[:_MAX_REASON]})

    def checked(self, step: int, attempt: str, damage: str) -> None:
        name = checkpoint_id_of(step, attempt) if attempt else ""
        self._notify(step, pb.CheckpointInfo.CHECKED, {"damage": damage[:_MAX_REASON]}, checkpoint_id=name)

    def _await(self, attempt: SaveAttempt) -> pb.CheckpointDecision:
        """Returns when the attempt is decided, or when it is this rank's turn to commit."""
        request = pb.CheckpointAttempt(attempt=attempt.attempt, worker_id=self._member().worker_id)
        timeout_s = attempt.deadline_s + _MARGIN_S
        decision: pb.CheckpointDecision = self._channel.call(self._stub.AwaitCheckpoint, request, timeout_s=timeout_s)
        return decision

    def _notify(self, step: int, kind: Any, metadata: dict[str, str], checkpoint_id: str = "") -> None:
        """Tried once: nothing waits for it, and whoever has something to say says it again."""
        request = pb.CheckpointInfo(
            checkpoint_id=checkpoint_id,
            step=step,
            storage_path=step_path(self._storage_path, step),
            type=kind,
            metadata=metadata,
        )
        self._call(self._stub.NotifyCheckpoint, request, timeout_s=_HOUSEKEEPING_S, patience_s=0.0)

    def _call(self, method: Any, request: Any, **options: float) -> Any:
        """As this member: a process that has taken its place fences it."""
        member = self._member()
        request.worker_id, request.incarnation = member.worker_id, member.incarnation
        return self._channel.call(method, request, **options)


def _outcome(decision: pb.CheckpointDecision) -> SaveOutcome:
    committed = decision.verdict == pb.CheckpointDecision.COMMITTED
    return SaveOutcome(committed=committed, missing=tuple(decision.missing), reason=decision.reason)


def _votes(decision: pb.CheckpointDecision) -> tuple[Vote, ...]:
    return tuple(
        Vote(rank=vote.rank, key=vote.manifest_key, digest=vote.manifest_hash, size=vote.size_bytes)
        for vote in sorted(decision.votes, key=lambda item: item.rank)
    )
