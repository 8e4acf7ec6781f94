"""Messages of queue mode to records and back."""

from collections.abc import Iterable

from strata.protocol.fields import from_message, to_message
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.queues import LeaseProgress, QueueGrant, QueueLease, QueueStatus

__all__ = ["from_grant", "from_progress", "to_grant", "to_progress"]


def to_progress(progress: Iterable[LeaseProgress]) -> list[pb.LeaseProgress]:
    return [to_message(pb.LeaseProgress, item) for item in progress]


def from_progress(messages: Iterable[pb.LeaseProgress]) -> tuple[LeaseProgress, ...]:
    return tuple(from_message(LeaseProgress, item) for item in messages)


def to_grant(grant: QueueGrant) -> pb.QueueGrant:
    return to_message(
        pb.QueueGrant,
        grant,
        status=pb.QueueGrant.Status.Value(grant.status.name),
        lease=None if grant.lease is None else to_message(pb.QueueLease, grant.lease),
        held=to_progress(grant.held),
    )


def from_grant(message: pb.QueueGrant) -> QueueGrant:
    return from_message(
        QueueGrant,
        message,
        status=QueueStatus[pb.QueueGrant.Status.Name(message.status)],
        lease=from_message(QueueLease, message.lease) if message.HasField("lease") else None,
        held=from_progress(message.held),
    )
