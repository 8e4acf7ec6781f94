"""Figures as REST and Prometheus give them, from workers of the original proto: what was not measured is unknown."""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

_TRAINING = pb.WorkerStatus(state=pb.WorkerStatus.TRAINING, current_step=5)
_GPUS = [
    pb.GpuUsage(gpu_id=number, utilization_percent=10.0 * number, memory_used_bytes=1 << 30, memory_total_bytes=8 << 30)
    for number in (0, 1)
]
_RESOURCES = {
    "silent": None,
    "partly": pb.ResourceUsage(cpu_percent=12.5),
    "gpus": pb.ResourceUsage(cpu_percent=150.0, memory_used_bytes=3_000_000, gpu_usage=_GPUS, network_rx_bytes=77),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three workers of the original proto that have beaten once and passed one barrier."""
    with (
        Cluster(tmp_path_factory.mktemp("figures"), "--no-agent") as running,
        grpc.insecure_channel(running.endpoints["grpc"]) as channel,
    ):
        stub: Any = CoordinatorStub(channel)
        for name, resources in _RESOURCES.items():
            stub.RegisterWorker(pb.WorkerInfo(worker_id=name, hostname="h", port=1, gpu_count=0))
            stub.Heartbeat(pb.HeartbeatRequest(worker_id=name, status=_TRAINING, resources=resources))
        threads = [
            threading.Thread(target=stub.WaitBarrier, args=(pb.BarrierRequest(worker_id=name, barrier_id="b", step=1),))
            for name in _RESOURCES
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        eventually("three workers", lambda: len(_workers(running)) == 3)
        eventually("a barrier", lambda: running.get("/api/metrics")["barrier_latency_p99"] is not None)
        yield running


def _workers(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in cluster.get("/api/workers") if one["current_step"]}


def test_what_a_worker_did_not_measure_is_null(cluster: Cluster) -> None:
    workers = _workers(cluster)
    assert workers["silent"]["resources"] is None
    nothing = dict.fromkeys(
        ("memory_used_bytes", "disk_read_bytes", "disk_write_bytes", "network_rx_bytes", "network_tx_bytes")
    )
    assert workers["partly"]["resources"] == {"cpu_percent": 12.5, "gpu_metrics": [], **nothing}
    measured = workers["gpus"]["resources"]
    assert (measured["cpu_percent"], measured["memory_used_bytes"]) == (150.0, 3_000_000)
    assert (measured["network_rx_bytes"], measured["network_tx_bytes"]) == (77, None)
    assert [gpu["utilization_percent"] for gpu in measured["gpu_metrics"]] == [0.0, 10.0]


def test_nobody_waits_shorter_than_the_release_takes(cluster: Cluster) -> None:
    figures = cluster.get("/api/metrics")
    assert figures["barrier_wait_p99"] >= figures["barrier_latency_p99"] > 0


def test_prometheus_reads_every_figure(cluster: Cluster) -> None:
    with urlopen(f"{cluster.endpoints['http']}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}

    def values(name: str) -> dict[str, float]:
        return {one.labels.get("worker", "") + one.labels.get("gpu", ""): one.value for one in families[name].samples}

    assert values("strata_active_workers") == {"": 3.0}
    assert values("strata_worker_cpu_ratio") == {"partly": 0.125, "gpus": 1.5}
    assert values("strata_worker_memory_bytes") == {"gpus": 3_000_000}
    assert values("strata_worker_network_rx_bytes") == {"gpus": 77}
    assert values("strata_worker_gpu_utilization_ratio") == {"gpus0": 0.0, "gpus1": 0.1}
    assert values("strata_worker_gpu_memory_size_bytes") == {"gpus0": 8 << 30, "gpus1": 8 << 30}
    histogram = {one.name.removeprefix("strata_barrier_latency_seconds"): one for one in
                 families["strata_barrier_latency_seconds"].samples}  # fmt: skip
    assert histogram["_count"].value == 1
    assert histogram["_sum"].value > 0
    assert histogram["_bucket"].labels["le"] == "+Inf"


def test_promtool_accepts_every_name(cluster: Cluster) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; `make promtool` installs it")
    with urlopen(f"{cluster.endpoints['http']}/metrics", timeout=60) as answer:
        checked = subprocess.run([promtool, "check", "metrics"], input=answer.read(), capture_output=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")
