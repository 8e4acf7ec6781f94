"""Records of queue mode survive the wire."""

import pytest

from strata.errors import InvalidArgument
from strata.protocol.convert import from_grant, from_progress, to_grant, to_progress
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.queues import LeaseProgress, QueueGrant, QueueLease, QueueStatus

LEASE = QueueLease(lease_id=3, epoch=1, shard_id=9, start_index=90, num_rows=10, row=4)


@pytest.mark.parametrize("status", QueueStatus)
@pytest.mark.parametrize("lease", [None, LEASE])
def test_a_grant_comes_back_equal(status: QueueStatus, lease: QueueLease | None) -> None:
    held = (LeaseProgress(lease_id=3, row=4),)
    grant = QueueGrant(status=status, epoch=1, lease=lease, held=held, num_committed=94, num_samples=100)
    assert from_grant(pb.QueueGrant.FromString(to_grant(grant).SerializeToString())) == grant


def test_progress_is_checked_where_it_arrives() -> None:
    assert from_progress(to_progress([LeaseProgress(lease_id=1, row=0)])) == (LeaseProgress(lease_id=1, row=0),)
    with pytest.raises(InvalidArgument, match="lease 0"):
        from_progress([pb.LeaseProgress(row=1)])
    with pytest.raises(InvalidArgument, match="row -1"):
        from_progress([pb.LeaseProgress(lease_id=1, row=-1)])
