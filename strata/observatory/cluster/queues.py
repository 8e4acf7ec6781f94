"""Datasets that are read in queue mode, as REST shows them. Rows that a worker has read but not committed are not known
here: they are no events.
"""

from strata.cluster.model import Cluster
from strata.observatory.answers.datasets import DatasetQueue
from strata.sharding.queue import ShardQueue

__all__ = ["queue_views"]


def queue_views(cluster: Cluster, dataset_id: str) -> list[DatasetQueue]:
    """The queues of a dataset, one per task that reads it so, the newest last."""
    queues = cluster.queues.records.items()
    return [_view(task_id, queue) for (task_id, name), queue in queues if name == dataset_id]


def _view(task_id: str, queue: ShardQueue) -> DatasetQueue:
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
