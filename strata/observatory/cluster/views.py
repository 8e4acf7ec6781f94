"""The cluster's records in the shapes of the REST contract. Pure; what nobody measured is null, never 0."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from strata.cluster import datasets as registered
from strata.cluster import members
from strata.cluster import tasks as records
from strata.cluster.barriers import barrier_key
from strata.observatory.answers.checkpoints import Checkpoint
from strata.observatory.answers.cluster import Barrier, SystemMetrics
from strata.observatory.answers.datasets import Dataset
from strata.observatory.answers.hosts import Host
from strata.observatory.answers.tasks import Budget, Fork, Task, WarmSpares
from strata.observatory.answers.workers import Worker, WorkerStatus
from strata.observatory.cluster.followed import FollowedCluster, root_of
from strata.observatory.cluster.queues import queue_views
from strata.observatory.records.fill import fill
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus
from strata.types.datasets import DatasetSpec
from strata.types.tasks import LOSS_WINDOW_S, MAX_STALLED, TaskStatus, loss_budget
from strata.types.workers import MemberState

__all__ = ["barriers", "checkpoints", "datasets", "hosts", "metrics", "status_of", "suspects", "tasks", "workers"]

_STATUS: dict[str, WorkerStatus] = {
    "training": "active",
    "loading_data": "active",
    "checkpointing": "checkpointing",
    "recovering": "recovering",
    "error": "failed",
}
_PID_DIGITS = 7  # the kernel counts to 2**22
Record = TypeVar("Record")
View = TypeVar("View")


def workers(cluster: FollowedCluster, chosen: Sequence[members.Worker] | None = None) -> list[Worker]:
    """Everybody who is alive or died, or some of them."""
    shown = cluster.present() if chosen is None else chosen
    return _each(cluster, shown, lambda worker: f"worker {worker.worker_id}", _worker)


def suspects(cluster: FollowedCluster) -> list[Worker]:
    """Those that should have been heard of."""
    late = [
        one for one in cluster.present() if one.alive and cluster.vitals_of(one.worker_id).member_state == "suspect"
    ]
    return workers(cluster, late)


def hosts(cluster: FollowedCluster) -> list[Host]:
    """Those that are there, and those that were lost; those that left in peace are gone."""
    present = [agent for agent in cluster.records.agents.values() if agent.state is not MemberState.LEFT]
    tasks = [task for task in cluster.records.tasks.values() if task.status is TaskStatus.RUNNING]
    return [
        fill(
            Host,
            agent,
            id=agent.agent_id,
            state=(MemberState.DRAINING if agent.alive and agent.draining else agent.state).value,
            tasks=[task.task_id for task in tasks if agent.agent_id in task.course.placement],
        )
        for agent in sorted(present, key=lambda agent: agent.agent_id)
    ]


def _worker(cluster: FollowedCluster, worker: members.Worker) -> Worker:
    vitals = cluster.vitals_of(worker.worker_id)
    lost = worker.state is MemberState.LOST
    return fill(
        Worker,
        worker,
        vitals,
        id=worker.worker_id,
        ip=worker.metadata.get("ip") or worker.hostname,
        status=status_of(cluster, worker),
        state="lost" if lost else vitals.state or "unknown",
        member_state=worker.state if lost else vitals.member_state or worker.state,
        last_heartbeat=vitals.last_heartbeat or worker.joined_at,
        current_task=vitals.current_task or worker.task_id,
        host=worker.hostname,
        pid=_pid(worker.metadata.get("pid", "")),
        generation=cluster.records.world(worker.task_id).generation,
    )


def _pid(told: str) -> int | None:
    """As an agent notes it; metadata of other clients may be anything."""
    return int(told) if told.isdecimal() and len(told) <= _PID_DIGITS else None


def status_of(cluster: FollowedCluster, worker: members.Worker) -> WorkerStatus:
    """A worker of a later attempt is recovering until it trains: its task is being repaired, not idle."""
    if worker.state is MemberState.LOST:
        return "failed"
    state = cluster.vitals_of(worker.worker_id).state or "unknown"
    task = cluster.records.tasks.get(worker.task_id)
    if task is not None and task.attempt > 1 and state in ("unknown", "initializing"):
        return "recovering"
    return _STATUS.get(state, "idle")


def tasks(cluster: FollowedCluster, *, named: bool = True) -> list[Task]:
    """Newest first; without the names of their workers where those are too many."""
    workers: dict[str, list[members.Worker]] = {}
    for worker in cluster.records.workers.values():
        task = cluster.records.tasks.get(worker.task_id)
        if task is not None and worker.rank < task.size:  # an earlier attempt may have had more
            workers.setdefault(worker.task_id, []).append(worker)
    ordered = sorted(cluster.records.tasks.values(), key=lambda task: task.submitted_at, reverse=True)
    return _each(
        cluster,
        ordered,
        lambda task: f"task {task.task_id}",
        lambda cluster, task: _task(cluster, task, workers.get(task.task_id, []), named=named),
    )


def _each(
    cluster: FollowedCluster,
    records: Iterable[Record],
    name: Callable[[Record], str],
    view: Callable[[FollowedCluster, Record], View],
) -> list[View]:
    """The view of each. One that cannot be made (an earlier release wrote something else) must not hide the others."""
    shown = []
    for record in records:
        try:
            shown.append(view(cluster, record))
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            cluster.unshown[name(record)] = f"{type(error).__name__}: {error}"
    return shown


def _task(cluster: FollowedCluster, task: records.Task, workers: list[members.Worker], *, named: bool) -> Task:
    known = [cluster.vitals_of(worker.worker_id).progress for worker in workers]
    measured = [progress for progress in known if progress is not None]
    warm = cluster.spares.get(task.task_id)
    return fill(
        Task,
        task,
        task.spec,
        task.course,
        id=task.task_id,
        worker_ids=[worker.worker_id for worker in sorted(workers, key=lambda worker: worker.rank)] if named else [],
        progress=100.0 if task.status is TaskStatus.COMPLETED else max(measured, default=None),
        config=cluster.config_of(task.task_id),
        budget=_budget(task),
        min_workers=task.spec.least_workers,
        size=len(task.course.placement) or None,
        warm_spares=fill(WarmSpares, warm) if warm is not None else None,
        excluded_hosts=list(task.course.excluded),
        fork=_fork(cluster, task),
    )


def _fork(cluster: FollowedCluster, task: records.Task) -> Fork | None:
    """Of the changed config what is shown of the config: no secrets."""
    fork, shown = task.spec.fork, cluster.config_of(task.task_id)
    if fork is None:
        return None
    return fill(Fork, fork, skip=list(fork.skip), changes={key: shown.get(key) for key in fork.changes})


def _budget(task: records.Task) -> Budget:
    """How much of a task's restarts is used: failures of its own, and losses (kills from outside, lost hosts)."""
    return Budget(
        failures=task.course.failures,
        max_failures=task.spec.max_restarts,
        failures_in_a_row=task.course.stalled,
        max_failures_in_a_row=MAX_STALLED - 1,
        losses=task.course.losses,
        max_losses=loss_budget(task.spec.max_restarts),
        losses_in_all=task.course.preemptions,
        window_s=LOSS_WINDOW_S,
    )


def datasets(cluster: FollowedCluster) -> list[Dataset]:
    found = cluster.records.datasets.values()
    return _each(cluster, found, lambda dataset: f"dataset {dataset.spec.dataset_id}", _dataset)


def _dataset(cluster: FollowedCluster, dataset: registered.Dataset) -> Dataset:
    spec = dataset.spec
    queues = queue_views(cluster.records, spec.dataset_id)
    epoch, progress = _reading(cluster, spec)
    if queues:  # its readers count what they read; the queue knows what counts
        newest = queues[-1]
        epoch, progress = newest.epoch, 100.0 * newest.committed_samples / newest.num_samples
    return fill(
        Dataset,
        dataset,
        spec,
        id=spec.dataset_id,
        name=spec.metadata.get("name") or spec.dataset_id,
        shard_count=spec.num_shards,
        epoch=epoch,
        progress=progress,
        queues=queues,
        metadata=dict(spec.metadata),
    )


def _reading(cluster: FollowedCluster, spec: DatasetSpec) -> tuple[int | None, float | None]:
    """The epoch that its readers are in, and how much of it they have read, in percent."""
    alive = [worker.worker_id for worker in cluster.records.workers.values() if worker.alive]
    readers = [vitals for name in alive if (vitals := cluster.vitals_of(name)).dataset_id == spec.dataset_id]
    if not readers:
        return None, None
    epoch = max(reader.current_epoch or 0 for reader in readers)
    done = sum(reader.samples_done or 0 for reader in readers if reader.current_epoch == epoch)
    return epoch, min(100.0, 100.0 * done / spec.total_samples)


def checkpoints(cluster: FollowedCluster) -> list[Checkpoint]:
    """Newest first."""
    found = sorted(cluster.records.checkpoints.records.values(), key=lambda record: record.created_at, reverse=True)
    return _each(cluster, found, lambda record: f"checkpoint {record.id}", _checkpoint)


def _checkpoint(cluster: FollowedCluster, record: CheckpointInfo) -> Checkpoint:
    pins = cluster.pins.get(root_of(record.path))
    complete = cluster.is_complete(record)
    gone = record.status is CheckpointStatus.COMPLETED and not complete
    return fill(
        Checkpoint,
        record,
        size=record.size_bytes,
        status=CheckpointStatus.REMOVED if gone else record.status,
        pinned=None if pins is None else complete and record.step in pins,
        reason="no longer in its store" if gone else record.reason,
    )


def barriers(cluster: FollowedCluster) -> list[Barrier]:
    """Those that wait, then the last that ended, newest first."""
    waiting = [
        fill(
            Barrier,
            item,
            id=barrier_key(item.task_id, item.barrier_id, item.step, item.round),
            name=item.barrier_id,
            status="waiting",
            missing=list(item.missing),
            reason=None,
            wait_ms=None,
        )
        for item in cluster.waiting
    ]
    open_ids = {barrier.id for barrier in waiting}
    ended = [
        fill(
            Barrier,
            item,
            id=key,
            name=item.barrier_id,
            status="broken" if item.broken else "complete",
            missing=list(item.missing),
            wait_ms=max(0, round((item.ended_at - item.created_at) * 1000)),
        )
        for key, item in reversed(cluster.records.barriers.items())
        if key not in open_ids
    ]
    return [*waiting, *ended]


def metrics(cluster: FollowedCluster) -> SystemMetrics:
    """Measured by the coordinator over its sliding window; counts are of the workers that are alive."""
    alive = [worker for worker in cluster.records.workers.values() if worker.alive]
    doing = [status_of(cluster, worker) for worker in alive]
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
