"""Records of queue mode: what a worker is lent, how far it is, and what the queue answers. They check themselves."""

from dataclasses import dataclass
from enum import StrEnum

from strata.errors import InvalidArgument

__all__ = ["LeaseProgress", "QueueGrant", "QueueLease", "QueueStatus"]


class QueueStatus(StrEnum):
    """What a worker that asks for a shard should do next."""

    LEASED = "leased"  # read the shard of the grant
    WAIT = "wait"  # others still read; ask again, since what a dead one held comes back
    DRAINED = "drained"  # everything is read, not everything is committed: commit, then ask again
    FINISHED = "finished"  # every sample of the epoch is committed


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseProgress:
    """Rows of a lease before `row` were read (a report), or are in the model (a commit)."""

    lease_id: int
    row: int

    def __post_init__(self) -> None:
        if self.lease_id < 1 or self.row < 0:
            raise InvalidArgument(f"lease {self.lease_id} at row {self.row}: leases count from 1, rows from 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLease:
    """One shard on loan: samples `start_index`…`start_index + num_rows - 1` of the dataset, from `row` on.

    Rows are counted in the order of the epoch, which anybody can compute: whoever gets the rest goes on just there.
    """

    lease_id: int
    epoch: int
    shard_id: int
    start_index: int
    num_rows: int
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueGrant:
    """The answer to a worker that asks. `held` are all its leases with their committed rows."""

    status: QueueStatus
    epoch: int
    lease: QueueLease | None = None
    held: tuple[LeaseProgress, ...] = ()
    num_committed: int = 0
    num_samples: int = 0
