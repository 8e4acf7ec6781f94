"""Datasets that are read in queue mode: the coordinator's own queue, followed event by event, so that what is shown is
what it would answer. Pure. Rows that a worker has read but not committed are not known here: they are no events.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from strata.observatory.answers.datasets import DatasetQueue
from strata.sharding.queue import QueueOrder, ShardQueue
from strata.types.queues import LeaseProgress

__all__ = ["QueueBook"]

Record = dict[str, Any]


class _Followed(ShardQueue):
    """A queue that can be looked into."""

    def holders(self) -> Counter[str]:
        """Open leases by worker."""
        return Counter(lease.worker for lease in self._leases.values())

    def num_lent(self) -> int:
        """Rows of open leases that are not committed."""
        return sum(int(self._cursor.sizes[lease.place]) - self.committed_row(lease) for lease in self._leases.values())

    def num_read(self) -> int:
        """Open leases that are read to their end and wait for their commit."""
        return sum(lease.read for lease in self._leases.values())


class QueueBook:
    """`specs` are the registered datasets as their events describe them."""

    def __init__(self) -> None:
        self._queues: dict[tuple[str, str], _Followed] = {}
        self._handlers: dict[str, Callable[[_Followed, Record], None]] = {
            "QueueLeased": lambda queue, body: _lend(queue, body),
            "QueueEnded": lambda queue, body: queue.note_read(body["lease_ids"]),
            "QueueCommitted": lambda queue, body: queue.commit(body["worker_id"], _progress(body)),
            "QueueStaged": lambda queue, body: queue.stage(
                body["worker_id"], body["step"], body["fence"], _progress(body)
            ),
            "QueueRestored": lambda queue, body: queue.restore(body["step"], body["fence"]),
        }

    def load(self, dumped: list[Record], specs: Mapping[str, Record]) -> None:
        for item in dumped:
            queue = _Followed.load(_order(specs[item["dataset_id"]]), item["queue"])
            self._queues[item["task_id"], item["dataset_id"]] = cast("_Followed", queue)

    def apply(self, kind: str, body: Record, specs: Mapping[str, Record]) -> bool:
        """Follows an event; says whether it changed any queue."""
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(self._queues[body["task_id"], body["dataset_id"]], body)
            return True
        match kind:
            case "QueueOpened":
                self._open(body, specs)
                return True
            case "MembersLost":
                mine = self._of_task(body["task_id"])
                for queue in mine:
                    for worker_id in body["worker_ids"]:
                        queue.release(worker_id)
                return bool(mine)
            case "CheckpointCommitted":
                mine = self._of_task(body["task_id"])
                for queue in mine:
                    if body["attempt"]:
                        queue.settle(body["step"])
                    else:
                        queue.settle_alone(body["step"], body["worker_id"])
                return bool(mine)
            case "TaskChanged" if body["status"] == "completed":  # others may be resumed where their queue stands
                before = len(self._queues)
                self._queues = {key: queue for key, queue in self._queues.items() if key[0] != body["task_id"]}
                return len(self._queues) < before
        return False

    def views(self, dataset_id: str) -> list[DatasetQueue]:
        """Its queues, one per task that reads it so, the newest last."""
        return [_view(task_id, queue) for (task_id, name), queue in self._queues.items() if name == dataset_id]

    def _open(self, body: Record, specs: Mapping[str, Record]) -> None:
        key = (body["task_id"], body["dataset_id"])
        known = self._queues.get(key)
        if known is not None:
            known.open_epoch(body["epoch"])
            return
        self._queues[key] = _Followed(_order(specs[body["dataset_id"]]), body["epoch"])

    def _of_task(self, task_id: str) -> list[_Followed]:
        return [queue for key, queue in self._queues.items() if key[0] == task_id]


def _view(task_id: str, queue: _Followed) -> DatasetQueue:
    holders, lent = queue.holders(), queue.num_lent()
    return DatasetQueue(
        task_id=task_id or None,
        epoch=queue.epoch,
        num_samples=queue.num_samples,
        num_shards=len(queue.order.sizes),
        committed_samples=queue.num_committed,
        leased_samples=lent,
        remaining_samples=queue.num_samples - queue.num_committed - lent,
        leased_shards=holders.total(),
        read_shards=queue.num_read(),
        workers=dict(sorted(holders.items())),
        finished=queue.finished,
    )


def _lend(queue: _Followed, body: Record) -> None:
    queue.lend(body["worker_id"], body["place"], body["lease_id"])


def _progress(body: Record) -> list[LeaseProgress]:
    pairs = zip(body["lease_ids"], body["rows"], strict=True)
    return [LeaseProgress(lease_id=lease_id, row=row) for lease_id, row in pairs]


def _order(spec: Record) -> QueueOrder:
    """As the coordinator makes it of the same registration."""
    total, size = spec["total_samples"], spec["shard_size"]
    sizes = np.full(-(-total // size), size, dtype=np.int64)
    sizes[-1] = total - size * (len(sizes) - 1)
    return QueueOrder(dataset=spec["dataset_id"], seed=spec["seed"], shuffle=spec["shuffle"], sizes=sizes)
