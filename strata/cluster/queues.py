"""Queue mode: shards of an epoch lent to whoever is free in a group, followed event by event."""

from collections.abc import Mapping

import numpy as np

from strata.cluster import events as e
from strata.cluster.datasets import Dataset
from strata.cluster.events.queues import OfQueue
from strata.sharding.queue import START, QueueOrder, ShardQueue
from strata.types.datasets import DatasetSpec
from strata.types.queues import LeaseProgress
from strata.types.tasks import TaskStatus

__all__ = ["QueueRecords", "queue_order"]


class QueueRecords:
    """Queues by (group, dataset), the newest last."""

    def __init__(self, datasets: Mapping[str, Dataset]) -> None:
        self._datasets = datasets
        self.records: dict[tuple[str, str], ShardQueue] = {}

    def evolve(self, event: e.Event) -> None:
        match event:
            case e.QueueOpened():
                self._open(event)
            case e.QueueLeased():
                self._of(event).lend(event.worker_id, event.place, event.lease_id)
            case e.QueueEnded():
                self._of(event).note_read(event.lease_ids)
            case e.QueueCommitted():
                self._of(event).commit(event.worker_id, _progress(event))
            case e.QueueStaged():
                self._of(event).stage(event.worker_id, event.step, event.fence, _progress(event))
            case e.QueueRestored():
                self._of(event).restore(event.step, event.fence)
            case e.MembersLost():
                for queue in self._of_group(event.task_id):
                    for worker_id in event.worker_ids:
                        queue.release(worker_id)
            case e.CheckpointCommitted():
                for queue in self._of_group(event.task_id):
                    if event.attempt:
                        queue.settle(event.step)
                    else:
                        queue.settle_alone(event.step, event.worker_id)
            case e.TaskChanged() if event.status == TaskStatus.COMPLETED:
                for key in [key for key in self.records if key[0] == event.task_id]:
                    del self.records[key]  # others may be resumed, and go on where their queue stands
            case _:
                pass

    def _of(self, event: OfQueue) -> ShardQueue:
        return self.records[event.task_id, event.dataset_id]

    def _of_group(self, task_id: str) -> list[ShardQueue]:
        return [queue for key, queue in self.records.items() if key[0] == task_id]

    def _open(self, event: e.QueueOpened) -> None:
        key = (event.task_id, event.dataset_id)
        if key in self.records:
            self.records[key].open_epoch(event.epoch)
            return
        self.records[key] = queue = ShardQueue(queue_order(self._datasets[event.dataset_id].spec), event.epoch)
        # A rank that comes late with no checkpoint must not void the first leases.
        queue.restored = (event.fence, START)


def queue_order(spec: DatasetSpec) -> QueueOrder:
    """The order in which the shards of a dataset are lent, epoch by epoch."""
    sizes = np.full(spec.num_shards, spec.shard_size, dtype=np.int64)
    sizes[-1] = spec.total_samples - spec.shard_size * (spec.num_shards - 1)
    return QueueOrder(dataset=spec.dataset_id, seed=spec.seed, shuffle=spec.shuffle, sizes=sizes)


def _progress(event: e.QueueCommitted | e.QueueStaged) -> list[LeaseProgress]:
    pairs = zip(event.lease_ids, event.rows, strict=True)
    return [LeaseProgress(lease_id=lease_id, row=row) for lease_id, row in pairs]
