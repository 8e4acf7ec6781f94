"""A queue of one dataset's shards, lent to whoever is free: leases, commits, and the way back to a checkpoint.

Pure: the coordinator runs it for a cluster, a single process runs it alone. A lease is never progress. Rows count when
they are committed: by a call, or staged beforehand and then by the checkpoint they are part of.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.errors import Fenced, InvalidArgument, Refused
from strata.sharding.cursor import QueueCursor
from strata.sharding.hashing import derive_key
from strata.sharding.permutation import Permutation
from strata.sharding.takers import Takers
from strata.types.queues import LeaseProgress, QueueGrant, QueueLease, QueueStatus

__all__ = ["START", "Lease", "QueueOrder", "ShardQueue"]

START = -1  # the step of a job that has no checkpoint
_KEEP = 8  # checkpoints to which a queue can go back
_KEEP_CLOSED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOrder:
    """The order in which shards are lent, and rows read: the same for everybody who knows these four."""

    dataset: str
    seed: int
    shuffle: bool
    sizes: NDArray[np.int64]

    def shards(self, epoch: int) -> NDArray[np.int64]:
        """The shard at each place of the epoch."""
        if not self.shuffle:
            return np.arange(len(self.sizes), dtype=np.int64)
        return Permutation(len(self.sizes), derive_key("queue", self.dataset, self.seed, epoch)).all()

    def rows(self, lease: QueueLease) -> NDArray[np.int64]:
        """The sample numbers of a lease, from its row on."""
        places = np.arange(lease.row, lease.num_rows, dtype=np.int64)
        if self.shuffle:
            key = derive_key("queue rows", self.dataset, self.seed, lease.epoch, lease.shard_id)
            places = Permutation(lease.num_rows, key)(places)
        return lease.start_index + places


@dataclass(slots=True)
class Lease:
    """Who holds the shard at a place, and whether it is read to the end."""

    lease_id: int
    place: int
    worker: str
    read: bool = False


@dataclass(slots=True, kw_only=True)
class _Staged:
    """What a checkpoint of one step will commit: by worker, place → row, on top of the position `base`."""

    fence: int
    base: dict[str, Any]
    rows: dict[str, dict[int, int]] = field(default_factory=dict)


class ShardQueue:
    """The queue of one dataset and one group, in one epoch at a time. Methods named `check_…` refuse; the others rely
    on those checks."""

    def __init__(self, order: QueueOrder, epoch: int = 0) -> None:
        self.order = order
        self._starts = np.cumsum(order.sizes) - order.sizes
        self.num_samples = int(order.sizes.sum())
        self._first_epoch = epoch
        self._leases: dict[int, Lease] = {}
        self._last_id = 0
        self._staged: dict[int, _Staged] = {}
        self._marks: dict[int, dict[str, Any]] = {}  # step of a checkpoint → the cursor in it
        self._closed: dict[int, str] = {}  # leases whose every row is committed → who held them; the last few
        self.restored: tuple[int, int] | None = None  # (fence, step) of the last way back
        self.open_epoch(epoch)

    # --- reading

    @property
    def epoch(self) -> int:
        return self._cursor.epoch

    @property
    def finished(self) -> bool:
        return self._cursor.finished

    @property
    def num_committed(self) -> int:
        return self._cursor.num_committed

    @property
    def next_id(self) -> int:
        return self._last_id + 1

    @property
    def drained(self) -> bool:
        """Everything is read or committed; nobody will find anything to do until somebody commits or dies."""
        return self._cursor.free() is None and all(lease.read for lease in self._leases.values())

    def free_place(self, undecided: Collection[int] = ()) -> int | None:
        """The next place to lend. What is staged for a checkpoint that is still `undecided` (steps) is held back: that
        checkpoint may commit rows whose reader is dead."""
        staged = [self._staged[step] for step in undecided if step in self._staged]
        blocked = {place for item in staged for rows in item.rows.values() for place in rows}
        return self._cursor.free(blocked)

    def held_by(self, worker: str) -> list[Lease]:
        return [lease for lease in self._leases.values() if lease.worker == worker]

    def committed_row(self, lease: Lease) -> int:
        return self._cursor.row(lease.place)

    def committed_of(self, shards: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many rows of each shard are committed."""
        place = np.empty(len(self.shards), dtype=np.int64)
        place[self.shards] = np.arange(len(self.shards))
        return np.array([self._cursor.row(number) for number in place[shards].tolist()], dtype=np.int64)

    @property
    def idle(self) -> QueueStatus:
        """The status for a worker when no place is free."""
        if self.finished:
            return QueueStatus.FINISHED
        return QueueStatus.DRAINED if self.drained else QueueStatus.WAIT

    def grant(self, worker: str, status: QueueStatus, lease_id: int = 0) -> QueueGrant:
        """The answer to a worker, with the lease that it gets now."""
        held = self.held_by(worker)
        return QueueGrant(
            status=status,
            epoch=self.epoch,
            lease=self._described(self._leases[lease_id]) if lease_id else None,
            held=tuple(LeaseProgress(lease_id=lease.lease_id, row=self.committed_row(lease)) for lease in held),
            num_committed=self.num_committed,
            num_samples=self.num_samples,
        )

    def _described(self, lease: Lease) -> QueueLease:
        shard = int(self.shards[lease.place])
        return QueueLease(
            lease_id=lease.lease_id,
            epoch=self.epoch,
            shard_id=shard,
            start_index=int(self._starts[shard]),
            num_rows=int(self.order.sizes[shard]),
            row=self.committed_row(lease),
        )

    def holders(self) -> Counter[str]:
        """Open leases by worker."""
        return Counter(lease.worker for lease in self._leases.values())

    def num_lent(self) -> int:
        """Rows of open leases that are not committed."""
        return sum(int(self._cursor.sizes[lease.place]) - self.committed_row(lease) for lease in self._leases.values())

    def num_read(self) -> int:
        """Open leases that are read to their end and wait for their commit."""
        return sum(lease.read for lease in self._leases.values())

    def check_held(self, worker: str, progress: Sequence[LeaseProgress]) -> list[LeaseProgress]:
        """Refuses leases that this worker no longer holds, and rows outside of them. Returns those that are still open:
        the worker may not know yet that others are committed to their end."""
        open_ = [item for item in progress if self._closed.get(item.lease_id) != worker]
        for item in open_:
            lease = self._leases.get(item.lease_id)
            if lease is None or lease.worker != worker:
                raise Fenced(
                    f"fenced: worker {worker} does not hold lease {item.lease_id} any more",
                    hint="Its shard went back to the queue; what was read of it since the last commit does not count.",
                )
            low, high = self.committed_row(lease), int(self._cursor.sizes[lease.place])
            if not low <= item.row <= high:
                raise InvalidArgument(f"row {item.row} of lease {item.lease_id} is outside {low}…{high}")
        return open_

    def check_restore(self, step: int) -> None:
        if self._image_of(step) is None:
            known = sorted({*self._marks, *self._staged})
            raise Refused(
                f"the queue of {self.order.dataset!r} has no position for step {step}; it knows {known or 'no step'}",
                hint="It can go back to the last checkpoints that its workers staged, or to the start (step -1).",
            )

    # --- changing

    def open_epoch(self, epoch: int) -> None:
        self._set_cursor(self._load_cursor({"epoch": epoch}))
        self.takers = Takers(len(self.order.sizes))

    def lend(self, worker: str, place: int, lease_id: int) -> Lease:
        self._last_id = lease_id
        self._cursor.take(worker, place)
        self.takers.take(place, worker)
        lease = self._leases[lease_id] = Lease(lease_id, place, worker)
        return lease

    def unread(self, progress: Sequence[LeaseProgress]) -> list[int]:
        """Leases that are reported as read to the end for the first time."""
        found = ((item, self._leases[item.lease_id]) for item in progress)
        return [
            item.lease_id for item, lease in found if not lease.read and item.row == self._cursor.sizes[lease.place]
        ]

    def note_read(self, lease_ids: Sequence[int]) -> None:
        for lease_id in lease_ids:
            self._leases[lease_id].read = True

    def commit(self, worker: str, progress: Sequence[LeaseProgress]) -> None:
        for item in progress:
            self._cursor.commit(worker, self._leases[item.lease_id].place, item.row)
        self._close_done()

    def stage(self, worker: str, step: int, fence: int, progress: Sequence[LeaseProgress]) -> None:
        """These rows are part of the checkpoint of `step`. A later word of the worker replaces its earlier one; after
        a change of membership (a higher fence) nothing that was said before counts."""
        staged = self._staged.get(step)
        if staged is None or staged.fence != fence:
            staged = self._staged[step] = _Staged(fence=fence, base=self._cursor.to_dict())
        staged.rows[worker] = {self._leases[item.lease_id].place: item.row for item in progress}
        for old in sorted(self._staged)[:-_KEEP]:
            del self._staged[old]

    def settle(self, step: int) -> None:
        """Commits what was staged for the checkpoint of `step`, which now exists. A checkpoint older than the newest
        known one is ignored: the job has gone back behind it."""
        if step <= max(self._marks, default=START):
            return
        staged = self._staged.get(step)
        if staged is not None and staged.base["epoch"] == self.epoch:
            for worker, rows in staged.rows.items():
                self._settle_rows(worker, rows)
        self._close_done()
        self._mark(step)

    def settle_alone(self, step: int, worker: str) -> None:
        """Commits for a worker that saves by itself and has saved `step`."""
        staged = self._staged.get(step)
        if staged is not None and staged.base["epoch"] == self.epoch and worker in staged.rows:
            self._settle_rows(worker, staged.rows.pop(worker))
            self._close_done()

    def restore(self, step: int, fence: int) -> None:
        """Back to the checkpoint of `step`: commits above it are undone, every lease is void."""
        image = self._image_of(step)
        assert image is not None, "check_restore comes first"
        self._leases.clear()
        self._closed.clear()
        same_epoch = image["epoch"] == self.epoch
        self._set_cursor(self._load_cursor(image))
        if same_epoch:
            self.takers.forget(self._cursor.begun)
        else:
            self.takers = Takers(len(self.order.sizes))
        self._marks = {known: mark for known, mark in self._marks.items() if known <= step}
        if step != START:
            self._mark(step)
        self.restored = (fence, step)

    def release(self, worker: str) -> None:
        """Puts a worker's leases back into the queue, from their committed rows on."""
        for lease in self.held_by(worker):
            del self._leases[lease.lease_id]
        self._cursor.release(worker)
        self._closed = {number: holder for number, holder in self._closed.items() if holder != worker}

    def _settle_rows(self, worker: str, rows: Mapping[int, int]) -> None:
        for place, row in rows.items():
            holder = self._cursor.holders.get(place)
            if holder is not None and holder != worker:  # lent anew meanwhile, from a row that is now behind
                self._cursor.drop(place)
                self._leases = {number: lease for number, lease in self._leases.items() if lease.place != place}
            self._cursor.settle(place, row)

    def _close_done(self) -> None:
        for lease in [lease for lease in self._leases.values() if lease.place not in self._cursor.holders]:
            del self._leases[lease.lease_id]
            self._closed[lease.lease_id] = lease.worker
        while len(self._closed) > _KEEP_CLOSED:
            del self._closed[next(iter(self._closed))]

    def _mark(self, step: int) -> None:
        self._marks[step] = self._cursor.to_dict()
        for old in sorted(self._marks)[:-_KEEP]:
            del self._marks[old]

    def _image_of(self, step: int) -> dict[str, Any] | None:
        """The cursor as it was, or would have been, with the checkpoint of `step`."""
        if step == START:
            return {"epoch": self._first_epoch}
        if step in self._marks:
            return self._marks[step]
        staged = self._staged.get(step)
        if staged is None:
            return None
        cursor = self._load_cursor(staged.base)
        for rows in staged.rows.values():
            for place, row in rows.items():
                cursor.settle(place, row)
        return cursor.to_dict()

    # --- snapshots

    def _load_cursor(self, image: Mapping[str, Any]) -> QueueCursor:
        sizes = self.order.sizes[self.order.shards(image["epoch"])]
        return QueueCursor.from_dict(image, sizes) if "done" in image else QueueCursor(sizes, image["epoch"])

    def _set_cursor(self, cursor: QueueCursor) -> None:
        self.shards = self.order.shards(cursor.epoch)  # by their places in this epoch
        self._cursor = cursor

    def state(self, progress: Sequence[LeaseProgress] = ()) -> dict[str, Any]:
        """The committed position as plain JSON; with `progress`, as if that were committed."""
        cursor = self._load_cursor(self._cursor.to_dict())
        for item in progress:
            cursor.settle(self._leases[item.lease_id].place, item.row)
        return cursor.to_dict()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes to a position that `state` gave; every lease is void."""
        cursor = QueueCursor.from_dict(state, self.order.sizes[self.order.shards(int(state.get("epoch", 0)))])
        self._leases.clear()
        self._closed.clear()
        self._marks.clear()
        self._staged.clear()
        self._set_cursor(cursor)
        self.takers = Takers(len(self.order.sizes))

    def dump(self) -> dict[str, Any]:
        return {
            "first_epoch": self._first_epoch,
            "cursor": self._cursor.to_dict(),
            "leases": [[lease.lease_id, lease.place, lease.worker, lease.read] for lease in self._leases.values()],
            "last_id": self._last_id,
            "marks": [[step, mark] for step, mark in self._marks.items()],
            "staged": [
                [step, item.fence, item.base, [[who, list(rows.items())] for who, rows in item.rows.items()]]
                for step, item in self._staged.items()
            ],
            "closed": list(self._closed.items()),
            "restored": self.restored,
            "takers": self.takers.dump(),
        }

    @classmethod
    def load(cls, order: QueueOrder, dumped: Mapping[str, Any]) -> "ShardQueue":
        queue = cls(order, dumped["first_epoch"])
        queue._set_cursor(queue._load_cursor(dumped["cursor"]))
        queue.takers = Takers.load(dumped.get("takers"), len(order.sizes))
        for lease_id, place, worker, read in dumped["leases"]:
            queue.lend(worker, place, lease_id).read = read
        queue._last_id = dumped["last_id"]
        queue._marks = dict(dumped["marks"])
        for step, fence, base, rows in dumped["staged"]:
            by_worker = {who: dict(pairs) for who, pairs in rows}
            queue._staged[step] = _Staged(fence=fence, base=base, rows=by_worker)
        queue._closed = dict(dumped["closed"])
        queue.restored = tuple(dumped["restored"]) if dumped["restored"] else None
        return queue
