"""Queue mode: shards on loan, and the rows that count."""

from dataclasses import dataclass

from strata.cluster.events.base import Event

__all__ = ["OfQueue", "QueueCommitted", "QueueEnded", "QueueLeased", "QueueOpened", "QueueRestored", "QueueStaged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OfQueue:
    """Which queue it is about: that of a group, for a dataset."""

    task_id: str
    dataset_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOpened(OfQueue, Event):
    """A group lends out a dataset's shards of this epoch; every sample of the one before is committed."""

    epoch: int
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLeased(OfQueue, Event):
    """The shard at `place` of the epoch's order is lent to a worker, until it is committed or the worker is gone."""

    worker_id: str
    place: int
    lease_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEnded(OfQueue, Event):
    """The holders have read these leases to their end; what they read is not committed yet."""

    lease_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCommitted(OfQueue, Event):
    """A worker's rows count: of each lease those before the row beside it."""

    worker_id: str
    lease_ids: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStaged(OfQueue, Event):
    """A worker's rows will count when the checkpoint of `step` is committed, which they are part of."""

    worker_id: str
    step: int
    fence: int
    lease_ids: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRestored(OfQueue, Event):
    """The group went back to the checkpoint of `step` (-1 = to the start): later commits are undone, leases void."""

    step: int
    fence: int
