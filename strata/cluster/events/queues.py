"""Queue mode: shards on loan, and the rows that count."""

from dataclasses import dataclass

from strata.cluster.events.base import Event

__all__ = ["QueueCommitted", "QueueEnded", "QueueLeased", "QueueOpened", "QueueRestored", "QueueStaged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOpened(Event):
    """A group lends out a dataset's shards of this epoch; every sample of the one before is committed."""

    task_id: str
    dataset_id: str
    epoch: int
    fence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLeased(Event):
    """The shard at `place` of the epoch's order is lent to a worker, until it is committed or the worker is gone."""

    task_id: str
    dataset_id: str
    worker_id: str
    place: int
    lease_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEnded(Event):
    """The holders have read these leases to their end; what they read is not committed yet."""

    task_id: str
    dataset_id: str
    lease_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCommitted(Event):
    """A worker's rows count: of each lease those before the row beside it."""

    task_id: str
    dataset_id: str
    worker_id: str
    lease_ids: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStaged(Event):
    """A worker's rows will count when the checkpoint of `step` is committed, which they are part of."""

    task_id: str
    dataset_id: str
    worker_id: str
    step: int
    fence: int
    lease_ids: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRestored(Event):
    """The group went back to the checkpoint of `step` (-1 = to the start): later commits are undone, leases void."""

    task_id: str
    dataset_id: str
    step: int
    fence: int
