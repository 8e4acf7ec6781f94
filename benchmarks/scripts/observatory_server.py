"""A real observatory with its store process for a benchmark to load, and what both cost."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

__all__ = ["Server", "server"]


class Server:
    """Both processes, as `strata observatory` starts them."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        command = ["-m", "strata", "observatory", "--data-dir", str(folder)]
        command += ["--http-port", "0", "--telemetry-port", "0"]
        environment = {**os.environ, "COORDINATOR_ADDR": "127.0.0.1:1", **settings}
        file = folder / "observatory.json"
        file.unlink(missing_ok=True)
        self._process = subprocess.Popen([sys.executable, *command], env=environment, stderr=subprocess.DEVNULL)
        while not file.exists():
            time.sleep(0.05)
        endpoints = json.loads(file.read_text())
        self.http, self.telemetry = endpoints["http"], endpoints["telemetry"]
        while not self.status()["metric_store_ready"]:
            time.sleep(0.05)
        observatory = psutil.Process(self._process.pid)
        self._processes = [observatory, *observatory.children()]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.http}{path}") as response:  # noqa: S310 - our own server
            return json.load(response)

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get("/api/status")
        return found

    def cpu_s(self) -> list[float]:
        """Of the observatory and of its store, so far."""
        return [sum(process.cpu_times()[:2]) for process in self._processes]

    def rss_bytes(self) -> int:
        return sum(process.memory_info().rss for process in self._processes)

    def wait_stored(self) -> None:
        while self.status()["spool_backlog_bytes"]:
            time.sleep(0.02)

    def wait_idle(self) -> None:
        """Until neither process has much to do: one that has just started loads its history."""
        before = sum(self.cpu_s())
        while True:
            time.sleep(0.2)
            now = sum(self.cpu_s())
            if now - before < 0.02:
                return
            before = now

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


@contextmanager
def server(folder: Path | None = None, **environment: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="strata-bench-") as own:
        running = Server(folder or Path(own), environment)
        try:
            yield running
        finally:
            running.stop()
