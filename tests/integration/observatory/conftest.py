"""A real observatory: its own process, its own store process, real HTTP and gRPC on free ports."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support.described import the_api
from tests.support.local_http import LOCAL
from tests.support.waiting import eventually

_STOP_S = 90.0  # it ends itself, by force if need be, after 15
_MAIN = """
import sys
from strata.config import load_settings
from strata.observatory.server import run
given = dict(zip(("data_dir", "poll_interval_sec", "coordinator_addr"), sys.argv[1:]))
run(load_settings({**given, "http_port": 0, "telemetry_port": 0}))
"""


def wait_until(condition: Callable[[], Any], what: str, deadline_s: float = 60.0) -> Any:
    """`eventually`, for which connection errors mean not yet."""

    def look() -> Any:
        try:
            return condition()
        except (httpx.TransportError, FileNotFoundError, psutil.NoSuchProcess):
            return None

    return eventually(what, look, within_s=deadline_s)


class ObservatoryProcess:
    """Started, killed and started again over one data folder."""

    def __init__(self, data_dir: Path, *, poll_s: float = 0.3, coordinator: str = "127.0.0.1:1") -> None:
        self.data_dir = data_dir
        self._arguments = [str(data_dir), str(poll_s), coordinator]
        self._process: subprocess.Popen[bytes] | None = None
        self.http = ""
        self.telemetry = ""

    def start(self) -> "ObservatoryProcess":
        (self.data_dir / "observatory.json").unlink(missing_ok=True)
        environment = {**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "0"}
        self._process = subprocess.Popen([sys.executable, "-c", _MAIN, *self._arguments], env=environment)
        endpoints = wait_until(self._endpoints, "the observatory's start")
        self.http, self.telemetry = endpoints["http"], endpoints["telemetry"]
        return self

    def _endpoints(self) -> dict[str, Any] | None:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError(f"the observatory ended with code {self._process.returncode}")
        found: dict[str, Any] = json.loads((self.data_dir / "observatory.json").read_text())
        return found if found["pid"] == self._process.pid else None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def store_pid(self) -> int | None:
        children = psutil.Process(self.pid).children()
        stores = [child.pid for child in children if "strata.observatory.store.process" in child.cmdline()]
        return stores[0] if stores else None

    def kill(self) -> None:
        """kill -9 of the observatory; its store sees the closed socket and leaves by itself."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def dispose(self) -> None:
        """For teardown: no process stays behind, whatever the test did."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def stop(self) -> None:
        """One that does not end in time says where it is, in the captured stderr."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGUSR1)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2)  # for its answer, and it may end yet
            raise AssertionError(f"the observatory did not end within {_STOP_S:.0f} s of SIGTERM") from None
        assert code == 0, f"the observatory stopped with code {code}"

    def get(self, path: str, **params: Any) -> Any:
        response = LOCAL.get(f"{self.http}{path}", params=params)
        response.raise_for_status()
        body = response.json()
        the_api().check_answer(path, body)
        return body

    def post(self, path: str, body: Any) -> httpx.Response:
        return LOCAL.post(f"{self.http}{path}", json=body)

    def store_ready(self) -> bool:
        return bool(self.get("/api/status")["metric_store_ready"])


@pytest.fixture
def observatory(tmp_path: Path) -> Iterator[ObservatoryProcess]:
    process = ObservatoryProcess(tmp_path / "data").start()
    yield process
    process.dispose()


@pytest.fixture(scope="module")
def shared_observatory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservatoryProcess]:
    """For tests that keep to their own run ids."""
    process = ObservatoryProcess(tmp_path_factory.mktemp("shared") / "data").start()
    try:
        wait_until(process.store_ready, "the store's start")
        yield process
    finally:
        process.dispose()
