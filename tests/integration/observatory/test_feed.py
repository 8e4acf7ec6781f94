"""The read model against a real coordinator: followed live, kept while it is away, taken up again when it is back."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from strata.client.leaders import Leaders
from strata.observatory.cluster.commands import CoordinatorCommands
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.trust.access import OPEN
from strata.types.datasets import DatasetSpec
from tests.integration.observatory.conftest import ObservatoryProcess, wait_until

_COORDINATOR = """
import sys
from strata.config import load_settings
from strata.coordinator.server import run
run(load_settings({"data_dir": sys.argv[1], "grpc_port": sys.argv[2]}))
"""


class CoordinatorProcess:
    """Keeps its port over a restart, as a real one does."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "CoordinatorProcess":
        (self._data_dir / "coordinator.json").unlink(missing_ok=True)
        command = [sys.executable, "-c", _COORDINATOR, str(self._data_dir), str(self.port)]
        self._process = subprocess.Popen(command)
        endpoint = wait_until(
            lambda: json.loads((self._data_dir / "coordinator.json").read_text()), "the coordinator's start"
        )
        self.port = int(endpoint["grpc"].rpartition(":")[2])
        return self

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@pytest.fixture
def coordinator(tmp_path: Path) -> Iterator[CoordinatorProcess]:
    process = CoordinatorProcess(tmp_path / "control").start()
    yield process
    process.kill()


async def test_a_command_is_answered_when_the_records_show_what_it_did(coordinator: CoordinatorProcess) -> None:
    """Each command waits for the event that it caused, by number; the number is the coordinator's own count."""
    address = f"127.0.0.1:{coordinator.port}"
    awaited: list[int] = []

    async def shown(seq: int) -> None:
        awaited.append(seq)

    commands = CoordinatorCommands(Leaders(address), OPEN, shown)
    try:
        for name in ("a", "b"):
            spec = DatasetSpec(dataset_id=name, path="p", format="csv", total_samples=4, shard_size=2)
            await commands.register_dataset(spec)
            async with grpc.aio.insecure_channel(address) as channel:
                watch: Any = ControlStub(channel).WatchState(ct.WatchRequest())
                first = await watch.read()
            assert awaited[-1] == first.snapshot.seq
            assert name.encode() in first.snapshot.records_json
        assert awaited[0] < awaited[1]
    finally:
        await commands.stop()


def test_state_is_followed_kept_and_taken_up_again(tmp_path: Path, coordinator: CoordinatorProcess) -> None:
    """Takes about 8 s: a coordinator is killed and started again under a live observatory."""
    observatory = ObservatoryProcess(tmp_path / "data", coordinator=f"127.0.0.1:{coordinator.port}")
    try:
        _follow(observatory.start(), coordinator)
    finally:
        observatory.dispose()


def _follow(observatory: ObservatoryProcess, coordinator: CoordinatorProcess) -> None:
    def status() -> Any:
        return observatory.get("/api/status")

    wait_until(lambda: status()["connected"], "the connection")
    assert status()["started_at"] is not None
    with grpc.insecure_channel(f"127.0.0.1:{coordinator.port}") as channel:
        stub = CoordinatorStub(channel)
        stub.RegisterWorker(pb.WorkerInfo(worker_id="w1", hostname="h1", port=7, gpu_count=2), timeout=60)
        beat = pb.HeartbeatRequest(worker_id="w1", timestamp_ms=1)
        beat.status.state = pb.WorkerStatus.TRAINING
        beat.status.current_step = 42
        beat.resources.cpu_percent = 12.5
        stub.Heartbeat(beat, timeout=60)
        stub.RegisterDataset(
            pb.DatasetInfo(dataset_id="d1", path="p", format="csv", total_samples=100, shard_size=10), timeout=60
        )
        stub.NotifyCheckpoint(
            pb.CheckpointInfo(worker_id="w1", checkpoint_id="c1", step=40, storage_path="p", size_bytes=5), timeout=60
        )

    def worker() -> Any:
        found = observatory.get("/api/workers")
        return found[0] if found and found[0]["current_step"] == 42 else None

    shown = wait_until(worker, "the worker with its step")
    assert (shown["id"], shown["status"], shown["state"], shown["gpu_count"]) == ("w1", "active", "training", 2)
    assert shown["resources"]["cpu_percent"] == 12.5
    wait_until(lambda: observatory.get("/api/checkpoints"), "the checkpoint")
    assert observatory.get("/api/checkpoints")[0]["status"] == "completed"
    assert observatory.get("/api/datasets")[0]["shard_count"] == 10
    assert observatory.get("/api/metrics")["active_workers"] == 1
    registered = observatory.post("/api/datasets", {"id": "d2", "path": "p", "format": "csv", "total_samples": 7})
    assert registered.json()["total_shards"] == 7

    coordinator.kill()
    wait_until(lambda: not status()["connected"], "the loss of the connection")
    assert [one["id"] for one in observatory.get("/api/workers")] == ["w1"]
    assert observatory.post("/api/tasks", {"name": "t"}).status_code == 503
    coordinator.start()
    wait_until(lambda: status()["connected"], "the return of the connection")
    assert {one["id"] for one in observatory.get("/api/datasets")} == {"d1", "d2"}
    assert status()["term"] == 2
