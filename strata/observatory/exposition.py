"""The observatory and the cluster it follows as Prometheus text."""

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from strata.observatory.broadcaster import Broadcaster
from strata.observatory.intake import IntakeCounts
from strata.observatory.readmodel import views
from strata.observatory.readmodel.board import ClusterBoard

__all__ = ["Exposition"]

_INTAKE = {
    "points": "Metric points accepted",
    "logs": "Log lines accepted",
    "batches": "Telemetry batches accepted",
    "repeated": "Batches recognised as repeated and not taken twice",
    "refused": "Batches refused",
    "dropped_points": "Points that senders dropped because their buffer was full",
    "late_points": "Points that came for a run after it was deleted",
    "dropped_logs": "Log lines that senders dropped because their buffer was full",
}
_FIGURES = {
    "requests_per_s": "Requests per second at the coordinator",
    "barrier_latency_p99_ms": "Last arrival to last release, 99th percentile",
    "barrier_wait_p99_ms": "First arrival to release, 99th percentile",
    "shard_assignment_ms": "Time to deal shards",
    "checkpoint_mb_per_s": "Checkpoint throughput",
    "journal_commit_p99_ms": "Journal commit, 99th percentile",
    "loop_lag_ms": "Delay of the coordinator's event loop",
    "uptime_s": "Uptime of the coordinator",
}


class Exposition:
    """Made on request; a scrape reads counters and the read model, nothing else."""

    def __init__(
        self, board: ClusterBoard, stream: Broadcaster, counts: IntakeCounts, gauges: Callable[[], dict[str, float]]
    ) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Families(board, stream, counts, gauges))

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Families(Collector):
    def __init__(
        self, board: ClusterBoard, stream: Broadcaster, counts: IntakeCounts, gauges: Callable[[], dict[str, float]]
    ) -> None:
        self._board = board
        self._stream = stream
        self._counts = counts
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        for name, text in _INTAKE.items():
            yield CounterMetricFamily(f"strata_ingest_{name}", text, value=getattr(self._counts, name))
        for name, value in self._gauges().items():
            yield GaugeMetricFamily(f"strata_{name}", name.replace("_", " "), value=value)
        yield GaugeMetricFamily("strata_stream_clients", "Open SSE streams", value=self._stream.num_clients)
        yield CounterMetricFamily("strata_stream_resyncs", "Clients told to resync", value=self._stream.resyncs)
        yield GaugeMetricFamily(
            "strata_coordinator_connected", "Whether the coordinator answers", value=self._board.connected
        )
        if self._board.connected:
            yield from self._cluster()

    def _cluster(self) -> Iterator[Metric]:
        cluster = self._board.cluster
        yield _by_status("strata_workers", "Workers by status", views.workers(cluster))
        yield _by_status("strata_tasks", "Tasks by status", views.tasks(cluster))
        yield _by_status("strata_checkpoints", "Checkpoints by status", views.checkpoints(cluster))
        figures = cluster.figures
        for name, text in _FIGURES.items():
            if figures.get(name) is not None:
                yield GaugeMetricFamily(f"strata_coordinator_{name}", text, value=figures[name])
        calls = CounterMetricFamily("strata_coordinator_requests", "Requests by method", labels=["method"])
        for method, count in figures.get("requests_by_method", {}).items():
            calls.add_metric([method], count)
        yield calls
        if figures.get("barrier_latency_buckets"):
            yield _histogram(figures)


def _by_status(name: str, text: str, rows: list[dict[str, Any]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=["status"])
    for status in sorted({row["status"] for row in rows}):
        family.add_metric([status], sum(row["status"] == status for row in rows))
    return family


def _histogram(figures: dict[str, Any]) -> Metric:
    bounds = [str(bound / 1000) for bound in figures["barrier_bucket_bounds_ms"]] + ["+Inf"]
    total, buckets = 0, []
    for bound, count in zip(bounds, figures["barrier_latency_buckets"], strict=True):
        total += count
        buckets.append((bound, float(total)))
    return HistogramMetricFamily(
        "strata_barrier_latency_seconds", "Last arrival to last release", buckets=buckets, sum_value=None
    )
