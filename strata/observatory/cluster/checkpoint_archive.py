"""Keeps checkpoints in the store beside the metrics, so that a run's history outlives the coordinator's memory."""

from dataclasses import replace

from strata.cluster.checkpoints import committed_checkpoint
from strata.cluster.events import CheckpointCommitted, CheckpointRemoved, Event
from strata.observatory.answers.checkpoints import Checkpoint
from strata.observatory.background.batches import BatchQueue
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.records.fill import fill
from strata.observatory.store.base import Store
from strata.protocol.fields import to_message
from strata.protocol.generated.telemetry_pb2 import Batch, CheckpointRow
from strata.types.checkpoints import CheckpointStatus, throughput_of

__all__ = ["CheckpointArchive"]

_OF_RUN = """
SELECT id, step, epoch, path, size_bytes AS size, toUnixTimestamp64Milli(event_time) AS created_at_ms, worker_id,
       status, run_id AS task_id, duration_s, reason
FROM {db}.checkpoints FINAL WHERE run_id = {run:String} ORDER BY step DESC, created_at_ms DESC LIMIT 2000
"""


class CheckpointArchive:
    """Listens to the cluster's events; a batch id of cluster and sequence makes a replay harmless."""

    def __init__(self, published: PublishedCluster, queue: BatchQueue, store: Store) -> None:
        self._published = published
        self._queue = queue
        self._store = store
        published.listeners.append(self._on_event)

    async def of_run(self, run_id: str) -> list[Checkpoint]:
        """Newest step first, in the shape of GET /api/checkpoints."""
        rows = (await self._store.query(_OF_RUN, {"run": run_id})).to_rows()
        unknown = {"verified": None, "verified_at": None, "pinned": None}
        return [
            fill(Checkpoint, **row, **unknown, throughput=throughput_of(row["size"], row["duration_s"])) for row in rows
        ]

    def _on_event(self, event: Event, seq: int) -> None:
        known = self._published.followed.records.checkpoints.records
        match event:
            case CheckpointCommitted():
                records = [committed_checkpoint(event)]
            case CheckpointRemoved():
                there = [known[name] for name in event.checkpoint_ids if name in known]
                records = [replace(one, status=CheckpointStatus.REMOVED, reason=event.reason) for one in there]
            case _:
                return
        batch = Batch(batch_id=f"checkpoint-{self._published.followed.records.cluster_id}-{seq}")
        for record in records:
            later_ms = record.status is CheckpointStatus.REMOVED  # it replaces the commit's row and keeps its date
            row = to_message(
                CheckpointRow,
                record,
                event_time_ms=round(record.created_at * 1000) + later_ms,
                run_id=record.task_id or "",
                duration_s=record.duration_s or None,
            )
            batch.checkpoints.append(row)
        if batch.checkpoints:
            self._queue.put(batch)
