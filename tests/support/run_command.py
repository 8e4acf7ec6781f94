"""`strata run` as a user types it, with a cluster of its own inside: followed while it runs, and killed at will."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from strata.cluster.members import Worker
from strata.cluster.model import Cluster
from tests.support.nodes import _json, wait_for
from tests.support.records import seen_cluster

__all__ = ["RunCommand", "leftovers"]

_TASK = re.compile(r"^task (\S+)", re.MULTILINE)


class RunCommand:
    """Use as a context manager; leaving it ends what still runs. `verb` is run or resume."""

    def __init__(
        self, folder: Path, *arguments: str, environment: dict[str, str] | None = None, verb: str = "run"
    ) -> None:
        self.data_dir = folder / "strata"
        folder.mkdir(parents=True, exist_ok=True)
        self._out = Path(tempfile.mkstemp(".out", "run-", folder)[1])
        ports = {f"STRATA_{name}_PORT": "0" for name in ("GRPC", "HTTP", "TELEMETRY")}
        command = [sys.executable, "-m", "strata", verb, "--data-dir", str(self.data_dir), *arguments]
        with self._out.open("wb") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=out, env={**os.environ, **ports, **(environment or {})}
            )

    def __enter__(self) -> "RunCommand":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    @property
    def output(self) -> str:
        return self._out.read_text()

    def wait(self, timeout_s: float = 90.0) -> int:
        return self.process.wait(timeout_s)

    def task_id(self) -> str:
        found = wait_for(lambda: _TASK.search(self.output) or (self._running() and None), 60, "a task")
        return str(found[1])

    @property
    def task_id_told(self) -> str:
        """Of a command that has ended."""
        found = _TASK.search(self.output)
        assert found, self.output
        return found[1]

    def records(self) -> Cluster:
        endpoints = wait_for(lambda: _json(self.data_dir / "endpoints.json"), what="endpoints")
        return seen_cluster(endpoints["grpc"])

    def wait_checkpoint(self, step: int = 0, within_s: float = 60) -> None:
        """Until the task has one of at least this step."""
        task_id = self.task_id()
        wait_for(lambda: self._running() and self._saved(task_id) >= step, within_s, f"a checkpoint of step {step}")

    def _saved(self, task_id: str) -> int:
        latest = self.records().checkpoints.latest(task_id)
        return latest.step if latest is not None else -1

    def _running(self) -> bool:
        assert self.process.poll() is None, self.output
        return True

    def worker(self, rank: int) -> Worker:
        """Of the task, as it is registered now."""
        return self.records().workers[f"{self.task_id()}-{rank}"]

    def rank_pid(self, rank: int) -> int:
        return int(self.worker(rank).metadata["pid"])


def leftovers(folder: Path) -> list[str]:
    """Command lines of processes that still work in this folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or ())
        if str(folder) in line and process.pid != os.getpid():
            found.append(line[:200])
    return found
