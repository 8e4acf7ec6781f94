"""A real coordinator process for tests: own folder, own port, killed and started again at will."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc

from strata.protocol.generated.agents_pb2_grpc import AgentsStub
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from tests.support.records import first_snapshot
from tests.support.waiting import eventually

__all__ = ["CHANNEL_OPTIONS", "CoordinatorProcess"]

# A client that tries again at once: tests kill the coordinator and do not want to wait for a polite back-off.
CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 20),
    ("grpc.min_reconnect_backoff_ms", 20),
    ("grpc.max_reconnect_backoff_ms", 100),
    ("grpc.max_send_message_length", 32 * 1024 * 1024),
)


class CoordinatorProcess:
    """`strata coordinator` over a folder. A context manager; the port stays the same over restarts."""

    def __init__(self, folder: Path, *flags: str, **environment: str) -> None:
        self.folder = folder
        self.address = ""
        self._flags = flags
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("STRATA_")}
        self._environment |= {"STRATA_LOG": "info", **environment}
        self._port = "0"
        self._channel: grpc.Channel | None = None
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "CoordinatorProcess":
        self.start()
        self._channel = grpc.insecure_channel(self.address, options=CHANNEL_OPTIONS)
        return self

    def __exit__(self, *_: object) -> None:
        if self._channel is not None:
            self._channel.close()
        self.kill()

    # --- life

    def start(self) -> None:
        """Returns when it serves."""
        self.launch()
        ready = eventually("the coordinator", self._ready, within_s=30)
        self.address = str(ready["grpc"])
        self._port = self.address.rpartition(":")[2]

    def launch(self) -> None:
        command = [sys.executable, "-m", "strata", "coordinator", "--data-dir", str(self.folder)]
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--grpc-port", self._port, *self._flags],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                cwd=self.folder.parent,
            )

    def _ready(self) -> dict[str, Any] | None:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"the coordinator ended with {self.process.returncode}:\n{self.log()[-3000:]}")
        try:
            ready: dict[str, Any] = json.loads((self.folder / "coordinator.json").read_text())
        except FileNotFoundError:
            return None
        return ready if ready["pid"] == self.process.pid else None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        """kill -9, and no goodbye."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def log(self) -> str:
        return (self.folder.parent / f"{self.folder.name}.log").read_text(errors="replace")

    def token(self) -> str:
        return (self.folder / "token").read_text().strip()

    # --- talking to it

    @property
    def channel(self) -> grpc.Channel:
        assert self._channel is not None
        return self._channel

    @property
    def workers(self) -> CoordinatorStub:
        return CoordinatorStub(self.channel)

    @property
    def control(self) -> ControlStub:
        return ControlStub(self.channel)

    @property
    def agents(self) -> AgentsStub:
        return AgentsStub(self.channel)

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(first_snapshot(self.control).records_json)
        return state

    def worker(self, worker_id: str) -> dict[str, Any] | None:
        known = {item["worker_id"]: item for item in self.state()["workers"]}
        return known.get(worker_id)
