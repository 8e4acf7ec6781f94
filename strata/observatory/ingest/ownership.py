"""What a rank may report: the metrics and logs of its own task's runs, of no other's."""

from collections.abc import Callable

from strata.errors import PermissionDenied
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.trust.who import Visitor, Who

__all__ = ["check_batch"]


def check_batch(batch: Batch, visitor: Visitor, task_of: Callable[[str], str | None]) -> None:
    """`task_of` names the task of a run that is known, or None: a rank may begin a run of its own name. Whether its
    attempt still runs is not asked: the last points of an attempt come after its end, and are facts all the same."""
    if visitor.who is not Who.RANK:
        return
    if batch.events or batch.checkpoints or batch.attempts:
        raise PermissionDenied("a rank reports metrics, logs and samples, no rows of the cluster's own")
    begun = {run.run_id for run in batch.runs if visitor.owns_task(run.task_id)}
    named = {row.run_id for rows in (batch.series, batch.runs, batch.summaries, batch.texts) for row in rows}
    for run_id in named - {visitor.task_id}:
        known = task_of(run_id)
        if not (run_id in begun if known is None else visitor.owns_task(known)):
            raise PermissionDenied(f"run {run_id[:80]!r} is not of task {visitor.task_id}")
    for line in batch.logs:
        if not visitor.owns_task(line.task_id) or (line.worker_id and not visitor.owns_worker(line.worker_id)):
            raise PermissionDenied(f"a log line of {line.worker_id or line.task_id!r} is not of task {visitor.task_id}")
    for sample in batch.samples:
        if not visitor.owns_worker(sample.worker_id):
            raise PermissionDenied(f"worker {sample.worker_id[:80]!r} is not of task {visitor.task_id}")
