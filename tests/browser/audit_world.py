"""A cluster of which everything is known, because the audit itself made it: what was logged, killed and written."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import grpc

from strata.client.channel import Channel
from strata.client.records import RecordsClient
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub
from strata.types.metrics import NO_DEVICE
from tests.browser.audit_train import STOP
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

__all__ = ["PLAIN", "SAMPLES", "SAVED_TAGS", "SHARD_SIZE", "STATES", "WIDE", "AuditWorld", "PlainWorkers"]

TRAIN = Path(__file__).with_name("audit_train.py")
WIDE = 10_000
SAMPLES, SHARD_SIZE = 1_000, 64
SAVED_TAGS: dict[str, Any] = {"path": "s3://elsewhere/models/500", "size_bytes": 2_000_000}
STATES = {"finished": "finished", "failed": "failed", "killed": "killed", "lost": "lost"}
HANG_S = 15
"""Longer than a rank may stand still on a busy machine without hanging."""
SLOW_S = 180.0
"""Four interpreters start twice, on cores that others use too."""

_RUN = """
import os, signal, sys, strata
run = strata.init(name=sys.argv[1], run_id=sys.argv[1])
for step in range(1, 11):
    run.log({"loss": 1.0 / step}, step=step)
if sys.argv[1] == "failed":
    raise ValueError("the audit raised this")
if sys.argv[1] == "killed":
    import time
    time.sleep(3)
    os.kill(os.getpid(), signal.SIGKILL)
run.finish()
"""
_GPUS = [
    pb.GpuUsage(
        gpu_id=number,
        utilization_percent=25.0 + 50.0 * number,
        memory_used_bytes=3_000_000_000,
        memory_total_bytes=16_000_000_000,
        temperature_celsius=61.0,
    )
    for number in (0, 1)
]
PLAIN = {
    "plain-silent": None,
    "plain-partly": pb.ResourceUsage(cpu_percent=12.0),
    "plain-gpus": pb.ResourceUsage(
        cpu_percent=50.0, memory_used_bytes=3_000_000, gpu_usage=_GPUS, disk_read_bytes=5_000
    ),
}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class PlainWorkers:
    """Workers of the original proto: they beat with the same figures for ever, and two of three wait at a barrier."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._stub: Any = CoordinatorStub(self._channel)
        self._closing = threading.Event()
        self._threads = [threading.Thread(target=self._beat)]

    def __enter__(self) -> "PlainWorkers":
        for place, name in enumerate(PLAIN):
            self._stub.RegisterWorker(pb.WorkerInfo(worker_id=name, hostname="plain-host", port=7_000 + place))
        waiting = list(PLAIN)[1:]
        self._calls = [
            self._stub.WaitBarrier.future(pb.BarrierRequest(worker_id=name, barrier_id="audit-waits", step=7))
            for name in waiting
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        for call in self._calls:
            call.cancel()
        for thread in self._threads:
            thread.join()
        self._channel.close()

    def _beat(self) -> None:
        status = pb.WorkerStatus(state=pb.WorkerStatus.TRAINING, current_step=7, current_epoch=1)
        while not self._closing.wait(1.0):
            for name, resources in PLAIN.items():
                self._stub.Heartbeat(pb.HeartbeatRequest(worker_id=name, status=status, resources=resources))


class AuditWorld:
    """Made once; then nothing trains any more, and pages can be compared with the truth at rest."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.task = ""
        self.victim = ""
        self.victim_pid = 0
        self.began_at = self.killed_at = self.ended_at = 0.0

    @property
    def url(self) -> str:
        return self.cluster.endpoints["http"]

    def make(self) -> "AuditWorld":
        self._lose_a_run()
        self._register_data()
        self._train()
        for name in ("finished", "failed", "killed"):
            self._run_alone(name)
        self._log("wide", [{"metric": f"name/{n:05d}", "step": 0, "value": n} for n in range(WIDE)])
        saved = {"metric": "checkpoint_save", "step": 500, "value": 12.5, "tags": SAVED_TAGS}
        self._log("foreign", [saved, {"metric": "milestone/a", "step": 500, "value": 3.0}])
        eventually("how every run ended", lambda: self.states() == STATES, within_s=SLOW_S)
        return self

    def states(self) -> dict[str, str]:
        return {run["run_id"]: run["state"] for run in self.get("/runs") if run["run_id"] in STATES}

    def get(self, path: str) -> Any:
        with urlopen(f"{self.url}{path}", timeout=60) as response:
            return json.load(response)

    def series(
        self, run_id: str, metric: str = "", points: int = 2_000, attempts: str = "newest"
    ) -> list[dict[str, Any]]:
        chosen = f"&metric={metric}" if metric else ""
        asked = f"/metrics/{run_id}?points={points}{chosen}&attempts={attempts}"
        found: list[dict[str, Any]] = self.get(asked)["series"]
        return found

    def kept_steps(self) -> list[int]:
        """Checkpoints that are in their folder now."""
        folders = (self.folder / "checkpoints").glob("step-*")
        return sorted(int(folder.name.removeprefix("step-")) for folder in folders if (folder / "COMMIT.json").exists())

    def saved_bytes(self, step: int) -> int:
        """What the ranks wrote at a step, as the file system counts it."""
        folder = self.folder / "checkpoints" / f"step-{step:012d}"
        return sum(file.stat().st_size for file in folder.rglob("*.safetensors"))

    def times(self, what: str, step: int) -> list[float]:
        """When ranks did something at a step, as they noted it themselves; all attempts, earliest first."""
        lines = [line.split() for file in self.folder.glob("times-*") for line in file.read_text().splitlines()]
        return sorted(float(at) for kind, number, at in lines if (kind, int(number)) == (what, step))

    def alerts(self, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.get("/api/alerts") if one["kind"] == kind]

    def _lose_a_run(self) -> None:
        """A process on another host says that it runs, and is never heard of again."""
        batch = Batch(batch_id="audit-lost")
        batch.runs.add(
            run_id="lost", name="lost", status="running", host="elsewhere", pid=4_000, updated_at_ms=_now_ms()
        )
        batch.series.add(index=0, run_id="lost", metric="loss", device=NO_DEVICE)
        for step in range(1, 11):
            batch.points.series.append(0)
            batch.points.step.append(step)
            batch.points.event_time_ms.append(_now_ms())
            batch.points.value.append(1.0 / step)
        with grpc.insecure_channel(self.cluster.endpoints["telemetry"]) as channel:
            stub: Any = TelemetryStub(channel)
            stub.ReportOnce(batch, timeout=60)

    def _register_data(self) -> None:
        data = self.folder / "data"
        data.mkdir()
        for part in range(2):
            lines = [f"{part * SAMPLES // 2 + row},{row % 7}" for row in range(SAMPLES // 2)]
            (data / f"part-{part}.csv").write_text("\n".join(["number,label", *lines]) + "\n")
        self.cluster.post(
            "/api/datasets",
            {"id": "audit-data", "path": str(data / "*.csv"), "format": "csv", "shard_size": SHARD_SIZE},
        )

    def _train(self) -> None:
        """Four ranks; rank 2 is killed at a step that it logged, and the task ends after its second attempt."""
        body = {
            "name": "audit",
            "type": "script",
            "worker_count": 4,
            "config": {"lr": 0.125, "hang_timeout_s": HANG_S},
            "entrypoint": [sys.executable, str(TRAIN), str(self.folder)],
        }
        self.began_at = time.time()
        self.task = self.cluster.post("/api/tasks", body)["task_id"]
        eventually("step 25 of every rank", lambda: self._steps() == [STOP] * 4, within_s=SLOW_S)
        with Channel(self.cluster.endpoints["grpc"]) as channel:
            workers = RecordsClient(channel).workers(self.task)
        victim = next(one for one in workers if one.rank == 2)
        self.victim, self.victim_pid = victim.worker_id, int(victim.metadata["pid"])
        eventually("the hang is told", lambda: self.alerts("hang"), within_s=SLOW_S)
        (self.folder / "killed").touch()
        self.killed_at = time.time()
        os.kill(self.victim_pid, signal.SIGKILL)
        eventually("the task's end", lambda: self._status() in ("completed", "failed"), within_s=SLOW_S)
        self.ended_at = time.time()
        assert self._status() == "completed", self.get(f"/api/tasks/{self.task}")

    def _steps(self) -> list[int]:
        series = self.get(f"/metrics/{self.task}?metric=loss")["series"] if self._is_known() else []
        return [one["steps"][-1] for one in series]

    def _is_known(self) -> bool:
        return any(run["run_id"] == self.task for run in self.get("/runs"))

    def _status(self) -> str:
        return str(self.get(f"/api/tasks/{self.task}")["status"])

    def _run_alone(self, name: str) -> None:
        environment = {
            **os.environ,
            "COORDINATOR_ADDR": self.cluster.endpoints["grpc"],
            "STRATA_TELEMETRY_ADDR": self.cluster.endpoints["telemetry"],
            "STRATA_DATA_DIR": str(self.folder / "alone"),
        }
        command = [sys.executable, "-c", _RUN, name]
        done = subprocess.run(command, env=environment, capture_output=True, timeout=SLOW_S, check=False)
        expected = {"finished": 0, "failed": 1, "killed": -signal.SIGKILL}[name]
        assert done.returncode == expected, done.stderr.decode()
        eventually(f"the points of {name}", lambda: self._points_of(name) == 10, within_s=SLOW_S)

    def _points_of(self, run_id: str) -> int:
        run = next((one for one in self.get("/runs") if one["run_id"] == run_id), None)
        if run is None:
            return 0
        return sum(one["total_points"] for one in self.get(f"/metrics/{run_id}?metric=loss")["series"])

    def _log(self, run_id: str, points: list[dict[str, Any]]) -> None:
        for start in range(0, len(points), 2_500):
            body = json.dumps({"points": points[start : start + 2_500]}).encode()
            headers = {"content-type": "application/json"}
            with urlopen(Request(f"{self.url}/api/runs/{run_id}/points", data=body, headers=headers), timeout=60):
                pass
