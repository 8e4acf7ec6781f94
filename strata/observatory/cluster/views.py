"""The cluster's records in the shapes of the REST contract. Pure; what nobody measured is null, never 0."""

from collections.abc import Callable, Iterable
from typing import Any

from strata.observatory.cluster.fold import Cluster, Record, root_of
from strata.types.checkpoints import throughput_of
from strata.types.tasks import LOSS_WINDOW_S, MAX_STALLED, loss_budget

__all__ = ["barriers", "checkpoints", "datasets", "metrics", "tasks", "workers"]

_STATUS = {
    "training": "active",
    "loading_data": "active",
    "checkpointing": "checkpointing",
    "recovering": "recovering",
    "error": "failed",
}


def workers(cluster: Cluster) -> list[Record]:
    """Everybody who is alive or died; those who left in peace are gone."""
    present = [worker for worker in cluster.workers.values() if worker["state"] != "left"]
    ordered = sorted(present, key=lambda worker: (worker["task_id"], worker["rank"]))
    return _each(cluster, "worker_id", ordered, _worker)


def _worker(cluster: Cluster, worker: Record) -> Record:
    vitals = cluster.vitals.get(worker["worker_id"], {})
    state = vitals.get("state") or "unknown"
    lost = worker["state"] == "lost"
    heartbeat = vitals.get("last_heartbeat") or worker["joined_at"]
    return {
        "id": worker["worker_id"],
        "ip": worker["metadata"].get("ip") or worker["hostname"],
        "port": worker["port"],
        "status": "failed" if lost else _status(cluster, worker, state),
        "state": "lost" if lost else state,
        "member_state": worker["state"] if lost else vitals.get("member_state", worker["state"]),
        "gpu_count": worker["gpu_count"],
        **_time("last_heartbeat", heartbeat),
        "assigned_shards": vitals.get("assigned_shards"),
        "current_epoch": vitals.get("current_epoch"),
        "current_step": vitals.get("current_step"),
        "current_task": vitals.get("current_task") or worker["task_id"] or None,
        "rank": worker["rank"],
        "host": worker["hostname"] or None,
        "resources": vitals.get("resources"),
        "section": vitals.get("section"),
        "step_time_s": vitals.get("step_time_s"),
        "reason": worker["reason"] or None,
        "incarnation": worker["incarnation"] or None,
        "generation": cluster.generations.get(worker["task_id"]),
        "agent_id": worker["agent_id"] or None,
    }


def _status(cluster: Cluster, worker: Record, state: str) -> str:
    """Who starts anew in a later attempt recovers until it trains: its task is not idle, it is being repaired."""
    attempt = cluster.tasks.get(worker["task_id"], {}).get("attempt", 0)
    if attempt > 1 and state in ("unknown", "initializing"):
        return "recovering"
    return _STATUS.get(state, "idle")


def tasks(cluster: Cluster) -> list[Record]:
    """Newest first."""
    members: dict[str, list[Record]] = {}
    for worker in cluster.workers.values():
        members.setdefault(worker["task_id"], []).append(worker)
    tasks = [{**task, "members": members.get(task["task_id"], [])} for task in cluster.tasks.values()]
    found = _each(cluster, "task_id", tasks, _task)
    return sorted(found, key=lambda task: task["submitted_at_ms"] or 0, reverse=True)


def _each(
    cluster: Cluster, name: str, records: Iterable[Record], view: Callable[[Cluster, Record], Record]
) -> list[Record]:
    """The view of each. One that cannot be made (an earlier release wrote something else) must not hide the others."""
    shown = []
    for record in records:
        try:
            shown.append(view(cluster, record))
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            cluster.unshown[f"{name} {record.get(name)}"] = f"{type(error).__name__}: {error}"
    return shown


def _task(cluster: Cluster, task: Record) -> Record:
    members = task["members"]
    known = [cluster.vitals.get(worker["worker_id"], {}).get("progress") for worker in members]
    measured = [progress for progress in known if progress is not None]
    progress = 100.0 if task["status"] == "completed" else max(measured, default=None)
    return {
        "id": task["task_id"],
        "name": task["name"],
        "type": task["type"],
        "status": task["status"],
        "worker_ids": [worker["worker_id"] for worker in sorted(members, key=lambda worker: worker["rank"])],
        "dataset_id": task["dataset_id"] or None,
        **_time("submitted_at", task["submitted_at"]),
        **_time("started_at", task["started_at"]),
        **_time("completed_at", task["completed_at"]),
        "progress": progress,
        "config": task["config"],
        "attempt": task["attempt"],
        "reason": task["reason"],
        "worker_count": task["worker_count"],
        "launcher": task["launcher"],
        "max_restarts": task["max_restarts"],
        "budget": _budget(task),
    }


def _budget(task: Record) -> Record:
    """How much of a task's restarts is used: failures of its own, and losses (kills from outside, lost hosts)."""
    course = task["course"]
    return {
        "failures": course.get("failures", 0),
        "max_failures": task["max_restarts"],
        "failures_in_a_row": course.get("stalled", 0),
        "max_failures_in_a_row": MAX_STALLED - 1,
        "losses": course.get("losses", 0),
        "max_losses": loss_budget(task["max_restarts"]),
        "losses_in_all": course.get("preemptions", 0),
        "window_s": LOSS_WINDOW_S,
    }


def datasets(cluster: Cluster) -> list[Record]:
    return _each(cluster, "dataset_id", cluster.datasets.values(), _dataset)


def _dataset(cluster: Cluster, spec: Record) -> Record:
    queues = cluster.queues.views(spec["dataset_id"])
    epoch, progress = _reading(cluster, spec)
    if queues:  # its readers count what they read; the queue knows what counts
        newest = queues[-1]
        epoch, progress = newest["epoch"], 100.0 * newest["committed_samples"] / newest["num_samples"]
    return {
        "id": spec["dataset_id"],
        "name": spec["metadata"].get("name") or spec["dataset_id"],
        "total_samples": spec["total_samples"],
        "shard_size": spec["shard_size"],
        "shard_count": -(-spec["total_samples"] // spec["shard_size"]),
        "format": spec["format"],
        "shuffle": spec["shuffle"],
        "seed": spec["seed"],
        "path": spec["path"],
        **_time("registered_at", spec["registered_at"]),
        "epoch": epoch,
        "progress": progress,
        "queues": queues,
        "metadata": spec["metadata"],
    }


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


def checkpoints(cluster: Cluster) -> list[Record]:
    """Newest first."""
    found = sorted(cluster.checkpoints.values(), key=lambda record: record["created_at"], reverse=True)
    return _each(cluster, "id", found, _checkpoint)


def _checkpoint(cluster: Cluster, record: Record) -> Record:
    pins = cluster.pins.get(root_of(record["path"]))
    return {
        "id": record["id"],
        "step": record["step"],
        "epoch": record["epoch"],
        "size": record["size_bytes"],
        "path": record["path"],
        **_time("created_at", record["created_at"]),
        "worker_id": record["worker_id"],
        "status": record["status"],
        "task_id": record["task_id"],
        "duration_s": record.get("duration_s"),
        "throughput": throughput_of(record["size_bytes"], record.get("duration_s")),
        "verified": record.get("verified"),
        "pinned": None if pins is None else record["status"] == "completed" and record["step"] in pins,
        "reason": record.get("reason") or None,
    }


def barriers(cluster: Cluster) -> list[Record]:
    """Those that wait, then the last outcomes, newest first."""
    waiting = [
        {
            "id": f"{item['task_id']}/{item['barrier_id']}/{item['step']}/{item['round']}",
            "name": item["barrier_id"],
            "arrived": item["arrived"],
            "total": item["total"],
            "status": "waiting",
            **_time("created_at", item["created_at"]),
            "missing": item["missing"],
            "reason": None,
            "step": item["step"],
            "task_id": item["task_id"] or None,
            "wait_ms": None,
        }
        for item in cluster.waiting
    ]
    open_ids = {barrier["id"] for barrier in waiting}
    ended = [
        {
            "id": item["key"],
            "name": item["barrier_id"],
            "arrived": item["arrived"],
            "total": item["total"],
            "status": item["status"],
            **_time("created_at", item["created_at"]),
            "missing": item["missing"],
            "reason": item["reason"] or None,
            "step": item["step"],
            "task_id": item["task_id"] or None,
            "wait_ms": max(0, round((item["ended_at"] - item["created_at"]) * 1000)),
        }
        for item in reversed(cluster.outcomes.values())
        if item["key"] not in open_ids
    ]
    return [*waiting, *ended]


def metrics(cluster: Cluster) -> dict[str, Any]:
    """Measured by the coordinator over its sliding window; counts are of the workers that are alive."""
    alive = [worker for worker in workers(cluster) if worker["state"] != "lost"]
    figures = cluster.figures
    return {
        "checkpoint_throughput": figures.get("checkpoint_mb_per_s"),
        "coordinator_rps": figures.get("requests_per_s"),
        "active_workers": sum(worker["status"] in ("active", "checkpointing") for worker in alive),
        "total_workers": len(alive),
        "barrier_latency_p99": figures.get("barrier_latency_p99_ms"),
        "shard_assignment_time": figures.get("shard_assignment_ms"),
        "barrier_wait_p99": figures.get("barrier_wait_p99_ms"),
        "journal_commit_p99": figures.get("journal_commit_p99_ms"),
        "loop_lag": figures.get("loop_lag_ms"),
        "window_s": figures.get("window_s"),
    }


def _time(name: str, seconds: float | None) -> dict[str, int | None]:
    if seconds is None:
        return {name: None, f"{name}_ms": None}
    milliseconds = round(seconds * 1000)
    return {name: milliseconds // 1000, f"{name}_ms": milliseconds}
