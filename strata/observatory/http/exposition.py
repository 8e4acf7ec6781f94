"""The observatory and the cluster it follows as Prometheus text."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from strata.cluster.members import Agent
from strata.observatory.answers.checkpoints import Checkpoint
from strata.observatory.answers.tasks import Task
from strata.observatory.answers.workers import Resources, Worker
from strata.observatory.cluster import views
from strata.observatory.cluster.followed import FollowedCluster
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.ingest.intake import IntakeCounts
from strata.observatory.stream.broadcaster import Broadcaster
from strata.types.checkpoints import CheckpointStatus

__all__ = ["Exposition"]

_INTAKE = {
    "points": "Metric points accepted",
    "logs": "Log lines accepted",
    "batches": "Telemetry batches accepted",
    "repeated": "Batches recognised as repeated and not taken twice",
    "refused": "Batches refused",
    "dropped_points": "Points that senders dropped because their buffer was full",
    "late_points": "Points that came for a run after it was deleted",
    "fenced_points": "Points refused because a newer attempt had begun when an older one measured them",
    "fenced_logs": "Log lines refused because a newer attempt had begun when an older one wrote them",
    "dropped_logs": "Log lines that senders dropped because their buffer was full",
}
_OWN_COUNTERS = {
    "store_restarts": "Restarts of the store's process",
    "inserted_points": "Points written into the store",
    "unshown_points": "Points of series outside the live cache; they are in the store and read from there",
}
# In base units, as Prometheus wants them: the figure, its name here, its text and what it is divided by.
_FIGURES = (
    ("requests_per_s", "requests_per_second", "Requests per second at the coordinator", 1),
    ("barrier_latency_p99_ms", "barrier_latency_p99_seconds", "Last arrival to release, 99th percentile", 1e3),
    ("barrier_wait_p99_ms", "barrier_wait_p99_seconds", "First arrival to release, 99th percentile", 1e3),
    ("shard_assignment_ms", "shard_assignment_seconds", "Time to deal shards", 1e3),
    ("checkpoint_mb_per_s", "checkpoint_throughput_bytes_per_second", "Checkpoint throughput", 1e-6),
    ("journal_commit_p99_ms", "journal_commit_p99_seconds", "Journal commit, 99th percentile", 1e3),
    ("loop_lag_ms", "loop_lag_seconds", "Delay of the coordinator's event loop", 1e3),
    ("uptime_s", "uptime_seconds", "Uptime of the coordinator", 1),
)
_HOST = "the worker's host since the worker began"
_WORKER_LABELS = ("worker", "task", "rank", "host")
_WORKER_FIGURES: tuple[tuple[type[GaugeMetricFamily | CounterMetricFamily], str, str, str, int], ...] = (
    (GaugeMetricFamily, "cpu_percent", "cpu_ratio", "Cores in use; 1 is one core", 100),
    (GaugeMetricFamily, "memory_used_bytes", "memory_bytes", "Resident memory", 1),
    (CounterMetricFamily, "disk_read_bytes", "disk_read_bytes", "Bytes read from disk", 1),
    (CounterMetricFamily, "disk_write_bytes", "disk_write_bytes", "Bytes written to disk", 1),
    (CounterMetricFamily, "network_rx_bytes", "network_rx_bytes", f"Bytes received by {_HOST}", 1),
    (CounterMetricFamily, "network_tx_bytes", "network_tx_bytes", f"Bytes sent by {_HOST}", 1),
)
_GPU_GAUGES = (
    ("utilization_percent", "utilization_ratio", "Use of the GPU, 0 to 1", 100),
    ("memory_used_bytes", "memory_used_bytes", "Memory of the GPU in use", 1),
    ("memory_total_bytes", "memory_size_bytes", "Memory of the GPU", 1),
    ("temperature_celsius", "temperature_celsius", "Temperature of the GPU", 1),
)


_TaskValue = Callable[[Task, int | None, Checkpoint | None], float | None]
_TASK_FIGURES: tuple[tuple[type[GaugeMetricFamily | CounterMetricFamily], str, str, _TaskValue, float], ...] = (
    (GaugeMetricFamily, "ranks", "Ranks of the current attempt", lambda task, *_: task.size, 1),
    (GaugeMetricFamily, "attempt", "Number of the current attempt", lambda task, *_: task.attempt, 1),
    (CounterMetricFamily, "failures", "Failures of its own", lambda task, *_: task.budget.failures, 1),
    (CounterMetricFamily, "losses", "Kills and lost hosts", lambda task, *_: task.budget.losses_in_all, 1),
    (GaugeMetricFamily, "progress_ratio", "How far it is, 0 to 1", lambda task, *_: task.progress, 100),
    (GaugeMetricFamily, "step", "The highest step of a rank", lambda _, step, __: step, 1),
    (
        GaugeMetricFamily,
        "checkpoint_step",
        "Step of the newest checkpoint",
        lambda _, __, one: one.step if one else None,
        1,
    ),
    (
        GaugeMetricFamily,
        "checkpoint_timestamp_seconds",
        "When the newest checkpoint was made",
        lambda _, __, one: one.created_at_ms if one else None,
        1e3,
    ),
)


class Exposition(Collector):
    """Made on request; a scrape reads counters and the read model, nothing else."""

    def __init__(
        self,
        published: PublishedCluster,
        stream: Broadcaster,
        counts: IntakeCounts,
        gauges: Callable[[], dict[str, float]],
        goodput: Callable[[], Mapping[str, float]],
    ) -> None:
        self._published = published
        self._stream = stream
        self._counts = counts
        self._gauges = gauges
        self._goodput = goodput
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        for name, text in _INTAKE.items():
            yield CounterMetricFamily(f"strata_ingest_{name}", text, value=getattr(self._counts, name))
        for name, value in self._gauges().items():
            if name in _OWN_COUNTERS:
                yield CounterMetricFamily(f"strata_{name}", _OWN_COUNTERS[name], value=value)
            else:
                yield GaugeMetricFamily(f"strata_{name}", name.replace("_", " ").capitalize(), value=value)
        yield GaugeMetricFamily("strata_stream_clients", "Open SSE streams", value=self._stream.num_clients)
        yield CounterMetricFamily("strata_stream_resyncs", "Clients told to resync", value=self._stream.resyncs)
        yield GaugeMetricFamily(
            "strata_coordinator_connected", "Whether the coordinator answers", value=self._published.connected
        )
        if self._published.connected:
            yield from self._cluster()

    def _cluster(self) -> Iterator[Metric]:
        cluster = self._published.followed
        workers, totals = views.workers(cluster), views.metrics(cluster)
        yield GaugeMetricFamily("strata_active_workers", "Workers that train or save", value=totals.active_workers)
        yield _counted("strata_workers", "Workers by status", "status", (one.status for one in workers))
        yield _counted("strata_tasks", "Tasks by status", "status", (one.status for one in views.tasks(cluster)))
        checkpoints = (one.status for one in views.checkpoints(cluster))
        yield _counted("strata_checkpoints", "Checkpoints by status", "status", checkpoints)
        agents = cluster.records.agents.values()
        yield _counted("strata_agents", "Agents by state", "state", (agent.state for agent in agents))
        yield from _agents(cluster)
        yield from _tasks(cluster, workers)
        yield self._goodputs(cluster)
        measured = [(one, one.resources) for one in workers if one.state != "lost" and one.resources is not None]
        yield from _resources(measured)
        figures = cluster.figures
        for name, shown, text, divisor in _FIGURES:
            if figures.get(name) is not None:
                yield GaugeMetricFamily(f"strata_coordinator_{shown}", text, value=figures[name] / divisor)
        calls = CounterMetricFamily("strata_coordinator_requests", "Requests by method", labels=["method"])
        for method, count in figures.get("requests_by_method", {}).items():
            calls.add_metric([method], count)
        yield calls
        if figures.get("barrier_latency_buckets"):
            yield _histogram(figures)

    def _goodputs(self, cluster: FollowedCluster) -> Metric:
        text = "Share of a task's wall time that went into training, 0 to 1"
        family = GaugeMetricFamily("strata_task_goodput_ratio", text, labels=["task", "name"])
        for task_id, percent in self._goodput().items():
            task = cluster.records.tasks.get(task_id)
            if task is not None and not task.status.final:
                family.add_metric([task_id, task.spec.name], percent / 100)
        return family


def _agents(cluster: FollowedCluster) -> Iterator[Metric]:
    """What hosts that are alive offer, and what ranks of tasks that have not ended hold of it."""
    held = [
        (agent_id, task.spec.gpus_per_worker)
        for task in cluster.records.tasks.values()
        if not task.status.final
        for agent_id in task.course.placement
    ]
    slots, gpus = Counter(agent_id for agent_id, _ in held), Counter[str]()
    for agent_id, number in held:
        gpus[agent_id] += number
    alive = [agent for agent in cluster.records.agents.values() if agent.alive]
    values: tuple[tuple[str, str, Callable[[Agent], int]], ...] = (
        ("slots", "Ranks that a host takes", lambda agent: agent.slots),
        ("slots_held", "Ranks that are placed on a host", lambda agent: slots[agent.agent_id]),
        ("gpus", "GPUs that ranks on a host may have", lambda agent: agent.gpu_count),
        ("gpus_held", "GPUs that are given to ranks on a host", lambda agent: gpus[agent.agent_id]),
    )
    for name, text, value in values:
        family = GaugeMetricFamily(f"strata_agent_{name}", text, labels=["agent", "host"])
        for agent in alive:
            family.add_metric([agent.agent_id, agent.hostname], value(agent))
        yield family


def _tasks(cluster: FollowedCluster, workers: list[Worker]) -> Iterator[Metric]:
    """Of tasks that have not ended: a task that has would be told of for ever."""
    steps: dict[str, int] = {}
    for worker in workers:
        if worker.current_task and worker.current_step is not None:
            steps[worker.current_task] = max(worker.current_step, steps.get(worker.current_task, 0))
    saved: dict[str, Checkpoint] = {}
    for checkpoint in views.checkpoints(cluster):
        newest = saved.get(checkpoint.task_id or "")
        if checkpoint.status is CheckpointStatus.COMPLETED and (newest is None or checkpoint.step > newest.step):
            saved[checkpoint.task_id or ""] = checkpoint
    going = [task for task in views.tasks(cluster) if not task.status.final]
    for kind, shown, text, value, divisor in _TASK_FIGURES:
        family = kind(f"strata_task_{shown}", text, labels=["task", "name"])
        for task in going:
            _add(family, [task.id, task.name], value(task, steps.get(task.id), saved.get(task.id)), divisor)
        yield family


def _resources(workers: list[tuple[Worker, Resources]]) -> Iterator[Metric]:
    """Of workers that are alive and said what they use; what one did not measure it has no sample of."""
    for kind, name, shown, text, divisor in _WORKER_FIGURES:
        family = kind(f"strata_worker_{shown}", text, labels=_WORKER_LABELS)
        for worker, used in workers:
            _add(family, _labels(worker), getattr(used, name), divisor)
        yield family
    for name, shown, text, divisor in _GPU_GAUGES:
        family = GaugeMetricFamily(f"strata_worker_gpu_{shown}", text, labels=[*_WORKER_LABELS, "gpu"])
        for worker, used in workers:
            for gpu in used.gpu_metrics:
                _add(family, [*_labels(worker), str(gpu.gpu_id)], getattr(gpu, name), divisor)
        yield family


def _labels(worker: Worker) -> list[str]:
    return [worker.id, worker.current_task or "", str(worker.rank), worker.host or ""]


def _add(family: GaugeMetricFamily | CounterMetricFamily, labels: list[str], value: float | None, by: float) -> None:
    if value is not None:
        family.add_metric(labels, value / by)


def _counted(name: str, text: str, label: str, values: Iterable[str]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in sorted(Counter(values).items()):
        family.add_metric([value], count)
    return family


def _histogram(figures: dict[str, Any]) -> Metric:
    bounds = [str(bound / 1000) for bound in figures["barrier_bucket_bounds_ms"]] + ["+Inf"]
    total, buckets = 0, []
    for bound, count in zip(bounds, figures["barrier_latency_buckets"], strict=True):
        total += count
        buckets.append((bound, float(total)))
    seconds = figures.get("barrier_latency_sum_ms", 0.0) / 1e3  # a sum of zero is not sent
    return HistogramMetricFamily(
        "strata_barrier_latency_seconds", "Last arrival to release", buckets=buckets, sum_value=seconds
    )
