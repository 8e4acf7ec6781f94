"""The cluster's records in the shapes of the REST contract. Pure; what nobody measured is null, never 0."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from strata.observatory.answers.checkpoints import Checkpoint
from strata.observatory.answers.cluster import Barrier, SystemMetrics
from strata.observatory.answers.datasets import Dataset
from strata.observatory.answers.tasks import Budget, Task
from strata.observatory.answers.workers import GpuMetrics, Resources, Worker, WorkerStatus
from strata.observatory.cluster.fold import Cluster, Record, root_of
from strata.observatory.records.times import to_ms, to_s
from strata.types.checkpoints import throughput_of
from strata.types.tasks import LOSS_WINDOW_S, MAX_STALLED, loss_budget

__all__ = ["barriers", "checkpoints", "datasets", "metrics", "tasks", "workers"]

_STATUS: dict[str, WorkerStatus] = {
    "training": "active",
    "loading_data": "active",
    "checkpointing": "checkpointing",
    "recovering": "recovering",
    "error": "failed",
}
View = TypeVar("View")


def workers(cluster: Cluster) -> list[Worker]:
    """Everybody who is alive or died; those who left in peace are gone."""
    present = [worker for worker in cluster.workers.values() if worker["state"] != "left"]
    ordered = sorted(present, key=lambda worker: (worker["task_id"], worker["rank"]))
    return _each(cluster, "worker_id", ordered, _worker)


def _worker(cluster: Cluster, worker: Record) -> Worker:
    vitals = cluster.vitals.get(worker["worker_id"], {})
    state = vitals.get("state") or "unknown"
    lost = worker["state"] == "lost"
    heartbeat = vitals.get("last_heartbeat") or worker["joined_at"]
    return Worker(
        id=worker["worker_id"],
        ip=worker["metadata"].get("ip") or worker["hostname"],
        port=worker["port"],
        status="failed" if lost else _status(cluster, worker, vitals),
        state="lost" if lost else state,
        member_state=worker["state"] if lost else vitals.get("member_state") or worker["state"],
        gpu_count=worker["gpu_count"],
        last_heartbeat=to_s(heartbeat),
        last_heartbeat_ms=to_ms(heartbeat),
        assigned_shards=vitals.get("assigned_shards"),
        current_epoch=vitals.get("current_epoch"),
        current_step=vitals.get("current_step"),
        current_task=vitals.get("current_task") or worker["task_id"] or None,
        rank=worker["rank"],
        host=worker["hostname"] or None,
        resources=_resources(vitals.get("resources")),
        section=vitals.get("section"),
        step_time_s=vitals.get("step_time_s"),
        reason=worker["reason"] or None,
        incarnation=worker["incarnation"] or None,
        generation=cluster.generations.get(worker["task_id"]),
        agent_id=worker["agent_id"] or None,
    )


def _resources(usage: Record | None) -> Resources | None:
    if usage is None:
        return None
    return Resources(**{**usage, "gpu_metrics": [GpuMetrics(**gpu) for gpu in usage["gpu_metrics"]]})


def _status(cluster: Cluster, worker: Record, vitals: Record) -> WorkerStatus:
    """Who starts anew in a later attempt recovers until it trains: its task is not idle, it is being repaired."""
    state = vitals.get("state") or "unknown"
    attempt = cluster.tasks.get(worker["task_id"], {}).get("attempt", 0)
    if attempt > 1 and state in ("unknown", "initializing"):
        return "recovering"
    return _STATUS.get(state, "idle")


def tasks(cluster: Cluster) -> list[Task]:
    """Newest first."""
    members: dict[str, list[Record]] = {}
    for worker in cluster.workers.values():
        members.setdefault(worker["task_id"], []).append(worker)
    tasks = [{**task, "members": members.get(task["task_id"], [])} for task in cluster.tasks.values()]
    found = _each(cluster, "task_id", tasks, _task)
    return sorted(found, key=lambda task: task.submitted_at_ms or 0, reverse=True)


def _each(
    cluster: Cluster, name: str, records: Iterable[Record], view: Callable[[Cluster, Record], View]
) -> list[View]:
    """The view of each. One that cannot be made (an earlier release wrote something else) must not hide the others."""
    shown = []
    for record in records:
        try:
            shown.append(view(cluster, record))
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            cluster.unshown[f"{name} {record.get(name)}"] = f"{type(error).__name__}: {error}"
    return shown


def _task(cluster: Cluster, task: Record) -> Task:
    members = task["members"]
    known = [cluster.vitals.get(worker["worker_id"], {}).get("progress") for worker in members]
    measured = [progress for progress in known if progress is not None]
    progress = 100.0 if task["status"] == "completed" else max(measured, default=None)
    return Task(
        id=task["task_id"],
        name=task["name"],
        type=task["type"],
        status=task["status"],
        worker_ids=[worker["worker_id"] for worker in sorted(members, key=lambda worker: worker["rank"])],
        dataset_id=task["dataset_id"] or None,
        submitted_at=to_s(task["submitted_at"]),
        submitted_at_ms=to_ms(task["submitted_at"]),
        started_at=to_s(task["started_at"]),
        started_at_ms=to_ms(task["started_at"]),
        completed_at=to_s(task["completed_at"]),
        completed_at_ms=to_ms(task["completed_at"]),
        progress=progress,
        config=task["config"],
        attempt=task["attempt"],
        reason=task["reason"],
        worker_count=task["worker_count"],
        launcher=task["launcher"],
        max_restarts=task["max_restarts"],
        budget=_budget(task),
    )


def _budget(task: Record) -> Budget:
    """How much of a task's restarts is used: failures of its own, and losses (kills from outside, lost hosts)."""
    course = task["course"]
    return Budget(
        failures=course.get("failures", 0),
        max_failures=task["max_restarts"],
        failures_in_a_row=course.get("stalled", 0),
        max_failures_in_a_row=MAX_STALLED - 1,
        losses=course.get("losses", 0),
        max_losses=loss_budget(task["max_restarts"]),
        losses_in_all=course.get("preemptions", 0),
        window_s=LOSS_WINDOW_S,
    )


def datasets(cluster: Cluster) -> list[Dataset]:
    return _each(cluster, "dataset_id", cluster.datasets.values(), _dataset)


def _dataset(cluster: Cluster, spec: Record) -> Dataset:
    queues = cluster.queues.views(spec["dataset_id"])
    epoch, progress = _reading(cluster, spec)
    if queues:  # its readers count what they read; the queue knows what counts
        newest = queues[-1]
        epoch, progress = newest.epoch, 100.0 * newest.committed_samples / newest.num_samples
    return Dataset(
        id=spec["dataset_id"],
        name=spec["metadata"].get("name") or spec["dataset_id"],
        total_samples=spec["total_samples"],
        shard_size=spec["shard_size"],
        shard_count=-(-spec["total_samples"] // spec["shard_size"]),
        format=spec["format"],
        shuffle=spec["shuffle"],
        seed=spec["seed"],
        path=spec["path"],
        registered_at=to_s(spec["registered_at"]),
        registered_at_ms=to_ms(spec["registered_at"]),
        epoch=epoch,
        progress=progress,
        queues=queues,
        metadata=spec["metadata"],
    )


def _reading(cluster: Cluster, spec: Record) -> tuple[int | None, float | None]:
    """The epoch that its readers are in, and how much of it they have read, in percent."""
    readers = [
        vitals
        for worker_id, vitals in cluster.vitals.items()
        if vitals.get("dataset_id") == spec["dataset_id"] and cluster.workers.get(worker_id, {}).get("state") == "ready"
    ]
    if not readers:
        return None, None
    epoch = max(reader["current_epoch"] for reader in readers)
    done = sum(reader["samples_done"] for reader in readers if reader["current_epoch"] == epoch)
    return epoch, min(100.0, 100.0 * done / spec["total_samples"])


def checkpoints(cluster: Cluster) -> list[Checkpoint]:
    """Newest first."""
    found = sorted(cluster.checkpoints.values(), key=lambda record: record["created_at"], reverse=True)
    return _each(cluster, "id", found, _checkpoint)


def _checkpoint(cluster: Cluster, record: Record) -> Checkpoint:
    pins = cluster.pins.get(root_of(record["path"]))
    return Checkpoint(
        id=record["id"],
        step=record["step"],
        epoch=record["epoch"],
        size=record["size_bytes"],
        path=record["path"],
        created_at=to_s(record["created_at"]),
        created_at_ms=to_ms(record["created_at"]),
        worker_id=record["worker_id"],
        status=record["status"],
        task_id=record["task_id"],
        duration_s=record.get("duration_s"),
        throughput=throughput_of(record["size_bytes"], record.get("duration_s")),
        verified=record.get("verified"),
        verified_at=to_s(record.get("verified_at")),
        verified_at_ms=to_ms(record.get("verified_at")),
        pinned=None if pins is None else record["status"] == "completed" and record["step"] in pins,
        reason=record.get("reason") or None,
    )


def barriers(cluster: Cluster) -> list[Barrier]:
    """Those that wait, then the last outcomes, newest first."""
    waiting = [
        Barrier(
            id=f"{item['task_id']}/{item['barrier_id']}/{item['step']}/{item['round']}",
            name=item["barrier_id"],
            arrived=item["arrived"],
            total=item["total"],
            status="waiting",
            created_at=to_s(item["created_at"]),
            created_at_ms=to_ms(item["created_at"]),
            missing=item["missing"],
            reason=None,
            step=item["step"],
            task_id=item["task_id"] or None,
            wait_ms=None,
        )
        for item in cluster.waiting
    ]
    open_ids = {barrier.id for barrier in waiting}
    ended = [
        Barrier(
            id=item["key"],
            name=item["barrier_id"],
            arrived=item["arrived"],
            total=item["total"],
            status=item["status"],
            created_at=to_s(item["created_at"]),
            created_at_ms=to_ms(item["created_at"]),
            missing=item["missing"],
            reason=item["reason"] or None,
            step=item["step"],
            task_id=item["task_id"] or None,
            wait_ms=max(0, round((item["ended_at"] - item["created_at"]) * 1000)),
        )
        for item in reversed(cluster.outcomes.values())
        if item["key"] not in open_ids
    ]
    return [*waiting, *ended]


def metrics(cluster: Cluster) -> SystemMetrics:
    """Measured by the coordinator over its sliding window; counts are of the workers that are alive."""
    alive = [worker for worker in cluster.workers.values() if worker["state"] not in ("left", "lost")]
    doing = [_status(cluster, worker, cluster.vitals.get(worker["worker_id"], {})) for worker in alive]
    figures = cluster.figures
    return SystemMetrics(
        checkpoint_throughput=figures.get("checkpoint_mb_per_s"),
        coordinator_rps=figures.get("requests_per_s"),
        active_workers=sum(status in ("active", "checkpointing") for status in doing),
        total_workers=len(alive),
        barrier_latency_p99=figures.get("barrier_latency_p99_ms"),
        shard_assignment_time=figures.get("shard_assignment_ms"),
        barrier_wait_p99=figures.get("barrier_wait_p99_ms"),
        journal_commit_p99=figures.get("journal_commit_p99_ms"),
        loop_lag=figures.get("loop_lag_ms"),
        window_s=figures.get("window_s"),
    )
