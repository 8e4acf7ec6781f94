"""Who lends shards in queue mode: a coordinator behind a Protocol, or a queue inside this process. A QueueLoader uses
either; neither knows how data is read.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from strata.ambient import ambient
from strata.data.manifest import Manifest
from strata.errors import Refused
from strata.sharding.queue import QueueOrder, ShardQueue
from strata.types.queues import LeaseProgress, QueueGrant, QueueStatus

__all__ = ["LocalQueue", "LocalSource", "QueueSource", "queue_source"]


class QueueSource(Protocol):
    """The calls of one worker; they may block. Implemented by the client of the coordinator, and here."""

    def claim(self, dataset_id: str, epoch: int, held: Sequence[LeaseProgress] = ()) -> QueueGrant:
        """The next shard, or what to do instead. `held`: all leases of this worker, and how far it has read them."""
        ...

    def commit(
        self, dataset_id: str, epoch: int, progress: Sequence[LeaseProgress], step: int | None = None
    ) -> QueueGrant:
        """These rows count: now, or with `step` when the checkpoint of that step is committed."""
        ...

    def restore(self, dataset_id: str, step: int) -> QueueGrant:
        """Goes on from the checkpoint of `step`; -1 = there is none."""
        ...


class LocalQueue:
    """A queue for the loaders of one process, each under a name of its own. Thread-safe.

    Its state belongs into the checkpoint: with no coordinator, nobody else remembers it.
    """

    def __init__(self, order: QueueOrder) -> None:
        self.order = order
        self._queue = ShardQueue(order)
        self._lock = threading.Lock()

    @classmethod
    def of(cls, manifest: Manifest, *, seed: int = 0, shuffle: bool = True) -> "LocalQueue":
        """Lends the blocks of a manifest."""
        return cls(QueueOrder(dataset=manifest.digest, seed=seed, shuffle=shuffle, sizes=manifest.sizes))

    def source(self, worker: str = "local") -> "LocalSource":
        return LocalSource(self, worker)

    def leave(self, worker: str) -> None:
        """A worker is gone: what it held goes back."""
        with self._lock:
            self._queue.release(worker)

    def state_dict(self, progress: Sequence[LeaseProgress] = ()) -> dict[str, Any]:
        """What is committed; with `progress`, as if that were committed."""
        with self._lock:
            return self._queue.state(progress)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        with self._lock:
            self._queue.load_state(state)

    def claim(self, worker: str, epoch: int, held: Sequence[LeaseProgress]) -> QueueGrant:
        with self._lock:
            queue = self._queue
            if epoch < queue.epoch:
                return QueueGrant(status=QueueStatus.FINISHED, epoch=epoch, num_samples=queue.num_samples)
            known = queue.check_held(worker, held)
            if epoch > queue.epoch:
                if not queue.finished:
                    return queue.grant(worker, queue.idle)
                queue.open_epoch(epoch)
            place = queue.free_place()
            if place is not None:
                return queue.grant(worker, QueueStatus.LEASED, queue.lend(worker, place, queue.next_id).lease_id)
            queue.note_read(queue.unread(known))
            return queue.grant(worker, queue.idle)

    def commit(self, worker: str, progress: Sequence[LeaseProgress]) -> QueueGrant:
        with self._lock:
            self._queue.commit(worker, self._queue.check_held(worker, progress))
            return self._queue.grant(worker, QueueStatus.FINISHED if self._queue.finished else QueueStatus.WAIT)


class LocalSource:
    """One worker's view of a LocalQueue. Implements QueueSource."""

    def __init__(self, queue: LocalQueue, worker: str) -> None:
        self.queue = queue
        self._worker = worker

    def claim(self, dataset_id: str, epoch: int, held: Sequence[LeaseProgress] = ()) -> QueueGrant:
        return self.queue.claim(self._worker, epoch, held)

    def commit(
        self, dataset_id: str, epoch: int, progress: Sequence[LeaseProgress], step: int | None = None
    ) -> QueueGrant:
        if step is not None:
            raise _no_steps()
        return self.queue.commit(self._worker, progress)

    def restore(self, dataset_id: str, step: int) -> QueueGrant:
        raise _no_steps()


def _no_steps() -> Refused:
    return Refused(
        "a queue inside one process knows no checkpoints",
        hint="Save state_dict() in the checkpoint and give it to load_state_dict().",
    )


def queue_source() -> QueueSource | None:
    """Whom queue loaders of this process ask."""
    return None if ambient.queue is None else ambient.queue()
