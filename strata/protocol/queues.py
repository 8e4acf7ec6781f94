"""Messages of queue mode to records and back."""

from collections.abc import Iterable

from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.queues import LeaseProgress, QueueGrant, QueueLease, QueueStatus

__all__ = ["from_grant", "from_progress", "to_grant", "to_progress"]

_TO_STATUS = {
    QueueStatus.LEASED: pb.QueueGrant.LEASED,
    QueueStatus.WAIT: pb.QueueGrant.WAIT,
    QueueStatus.DRAINED: pb.QueueGrant.DRAINED,
    QueueStatus.FINISHED: pb.QueueGrant.FINISHED,
}
_FROM_STATUS = {number: status for status, number in _TO_STATUS.items()}


def to_progress(progress: Iterable[LeaseProgress]) -> list[pb.LeaseProgress]:
    return [pb.LeaseProgress(lease_id=item.lease_id, row=item.row) for item in progress]


def from_progress(messages: Iterable[pb.LeaseProgress]) -> tuple[LeaseProgress, ...]:
    return tuple(LeaseProgress(lease_id=item.lease_id, row=item.row) for item in messages)


def to_grant(grant: QueueGrant) -> pb.QueueGrant:
    message = pb.QueueGrant(
        status=_TO_STATUS[grant.status],
        epoch=grant.epoch,
        held=to_progress(grant.held),
        num_committed=grant.num_committed,
        num_samples=grant.num_samples,
    )
    if grant.lease is not None:
        message.lease.CopyFrom(
            pb.QueueLease(
                lease_id=grant.lease.lease_id,
                epoch=grant.lease.epoch,
                shard_id=grant.lease.shard_id,
                start_index=grant.lease.start_index,
                num_rows=grant.lease.num_rows,
                row=grant.lease.row,
            )
        )
    return message


def from_grant(message: pb.QueueGrant) -> QueueGrant:
    lease = message.lease
    return QueueGrant(
        status=_FROM_STATUS[message.status],
        epoch=message.epoch,
        lease=QueueLease(
            lease_id=lease.lease_id,
            epoch=lease.epoch,
            shard_id=lease.shard_id,
            start_index=lease.start_index,
            num_rows=lease.num_rows,
            row=lease.row,
        )
        if message.HasField("lease")
        else None,
        held=from_progress(message.held),
        num_committed=message.num_committed,
        num_samples=message.num_samples,
    )
