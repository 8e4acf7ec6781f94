"""A small real cluster for tests: a coordinator and agents as processes of their own, killed and started at will."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from strata.client.channel import Channel
from strata.client.datasets import DatasetsClient
from strata.client.tasks import TasksClient, TaskView
from strata.cluster.model import Cluster
from strata.data.manifest import build_manifest
from strata.trust.access import Access
from strata.types.datasets import DataFile, DatasetSpec
from strata.types.tasks import TaskSpec, TaskStatus
from tests.support.ports import RANK_PORTS
from tests.support.records import seen_cluster
from tests.support.waiting import eventually

_ENTRY = "from strata.cli.main import run; run()"

__all__ = ["Nodes", "wait_for", "write_dataset"]


def wait_for(condition: Callable[[], Any], timeout_s: float = 30.0, what: str = "") -> Any:
    """`eventually` for any answer."""
    return eventually(what or repr(condition), condition, within_s=timeout_s)


def write_dataset(folder: Path, rows: int = 4_000, files: int = 4, seed: int = 7) -> str:
    """Parquet with a pattern to learn: three numbers, and which of two classes they belong to."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    for number in range(files):
        x = random.normal(size=(rows // files, 3))
        label = (x @ np.array([1.5, -2.0, 0.5]) + 0.1 * random.normal(size=len(x)) > 0).astype(np.int64)
        table = pa.table({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "label": label})
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=250)
    return str(folder / "*.parquet")


class Nodes:
    """Processes over one data folder. Use as a context manager: whatever was started is ended."""

    insecure = False

    def __init__(self, folder: Path, slots: int = 4) -> None:
        self.data_dir = folder / "strata"
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._slots = slots
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._port = self._http_port = self._telemetry_port = 0
        self.http = self.telemetry = ""
        self._channels: list[Channel] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- processes

    def start(self, *names: str) -> None:
        for name in names or ("coordinator", "agent"):
            getattr(self, f"_start_{name}")()

    def _start_coordinator(self) -> None:
        ready = self.data_dir / "coordinator.json"
        ready.unlink(missing_ok=True)
        self._spawn("coordinator", "--grpc-port", str(self._port))
        found = wait_for(lambda: _json(ready), what="coordinator ready")
        self._port = int(found["grpc"].rpartition(":")[2])

    def _start_agent(self, wait: bool = True) -> None:
        ready = self.data_dir / "agent.json"
        ready.unlink(missing_ok=True)
        self._spawn("agent", "--slots", str(self._slots), "--coordinator", self.address)
        wait_for(lambda: _json(ready), what="agent attached")

    def _start_observatory(self) -> None:
        ready = self.data_dir / "observatory.json"
        ready.unlink(missing_ok=True)
        ports = ("--http-port", str(self._http_port), "--telemetry-port", str(self._telemetry_port))
        self._spawn("observatory", *ports, "--coordinator", self.address)
        found = wait_for(lambda: _json(ready), 60, what="observatory ready")
        self.http = str(found["http"])
        self._http_port = int(self.http.rpartition(":")[2])
        self.telemetry = str(found["telemetry"])
        self._telemetry_port = int(self.telemetry.rpartition(":")[2])

    def get(self, path: str) -> Any:
        """The observatory's JSON; None while it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.http}{path}", timeout=60) as answer:  # our own http
                return json.load(answer)
        except OSError:
            return None

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """As curl with -d and the JSON's content type."""
        data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{self.http}{path}", data, headers), timeout=60) as answer:
            return json.load(answer)

    def _spawn(self, name: str, *arguments: str) -> None:
        log = (self.data_dir / f"{name}.log").open("ab")
        command = [sys.executable, "-c", _ENTRY, name, "--data-dir", str(self.data_dir), *arguments]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("STRATA_")}
        environment["STRATA_RANK_PORTS"] = RANK_PORTS
        self._processes[name] = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env=environment, cwd=self.data_dir.parent
        )
        log.close()

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        process = self._processes.pop(name)
        process.send_signal(number)
        process.wait(60)

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def rank_pids(self, task_id: str) -> dict[int, int]:
        """From the agent's journal: rank → pid of the ranks that run."""
        found = {}
        for path in (self.data_dir / "agent" / "ranks").glob(f"{task_id}.*.json"):
            record = _json(path)
            if record and record["handle"] and not record["ended"]:
                found[record["rank"]] = int(record["handle"].partition(":")[0])
        return found

    def close(self) -> None:
        for channel in self._channels:
            channel.close()
        pids = [pid for task in self._known_tasks() for pid in self.rank_pids(task).values()]
        for name in [name for name in ("agent", "coordinator", "observatory") if name in self._processes]:
            process = self._processes.pop(name)
            process.kill()
            process.wait(10)
        for pid in pids:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _known_tasks(self) -> set[str]:
        paths = (self.data_dir / "agent" / "ranks").glob("*.json")
        return {str(record["task_id"]) for path in paths if (record := _json(path))}

    # --- calls

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def _token(self) -> str:
        return (self.data_dir / "token").read_text().strip()

    def channel(self) -> Channel:
        channel = Channel(self.address, access=Access(token=self._token(), insecure=self.insecure), patience_s=20.0)
        self._channels.append(channel)
        return channel

    def tasks(self) -> TasksClient:
        return TasksClient(self.channel())

    def records(self) -> Cluster:
        return seen_cluster(self.address, Access(insecure=self.insecure))

    def register(self, dataset_id: str, path: str, shard_size: int = 500) -> DatasetSpec:
        manifest = build_manifest(path, "parquet")
        sizes = [index.num_rows for index in manifest.indexes]
        files = tuple(DataFile(path=ref.uri, num_samples=size) for ref, size in zip(manifest.files, sizes, strict=True))
        spec = DatasetSpec(
            dataset_id=dataset_id,
            path=path,
            format="parquet",
            total_samples=sum(sizes),
            shard_size=shard_size,
            seed=42,
            files=files,
        )
        DatasetsClient(self.channel()).register(spec)
        return spec

    def submit(self, **values: Any) -> str:
        return self.tasks().submit(TaskSpec(**values))

    def task(self, task_id: str) -> TaskView:
        with Channel(
            self.address, access=Access(token=self._token(), insecure=self.insecure), patience_s=20.0
        ) as channel:
            return TasksClient(channel).get(task_id)

    def wait_task(self, task_id: str, *statuses: TaskStatus, timeout_s: float = 60.0) -> TaskView:
        wanted = statuses or (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.STOPPED)

        def reached() -> TaskView | None:
            task = self.task(task_id)
            return task if task.status in wanted else None

        found: TaskView = wait_for(reached, timeout_s, f"task {task_id} in {[str(item) for item in wanted]}")
        return found

    def output(self, task_id: str, attempt: int, rank: int, stream: str = "stdout") -> str:
        path = self.data_dir / "agent" / "logs" / task_id / str(attempt) / f"{rank}.{stream}"
        return path.read_text() if path.exists() else ""


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found
