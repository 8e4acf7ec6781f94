"""A real `strata up` for tests: own folder, own ports, real child processes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil

from tests.support.ports import RANK_PORTS
from tests.support.waiting import eventually

__all__ = ["Cluster", "descendants", "strata", "strata_each"]

_EACH = """
import contextlib, io, json, os, sys
from strata.cli.main import run

ends, own = [], dict(os.environ)
for arguments, environment in json.load(sys.stdin):
    sys.argv, out, err, code = ["strata", *arguments], io.StringIO(), io.StringIO(), 0
    os.environ.update(environment)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run()
        except SystemExit as end:
            code = end.code
    os.environ.clear()
    os.environ.update(own)
    ends.append((arguments, code, out.getvalue(), err.getvalue()))
json.dump(ends, sys.stdout)
"""


def strata(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs one `strata` command to its end."""
    command = [sys.executable, "-m", "strata", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, **environment})


def strata_each(
    commands: Sequence[tuple[Sequence[str], dict[str, str]]], **environment: str
) -> list[subprocess.CompletedProcess[str]]:
    """Runs `strata` commands, each with variables of its own, one after another in one process: for those that are
    refused before they start anything."""
    done = subprocess.run(
        [sys.executable, "-c", _EACH],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return [subprocess.CompletedProcess(*end) for end in json.loads(done.stdout)]


class Cluster:
    """`strata up` in a folder. Use as a context manager; leaving it is Ctrl-C."""

    def __init__(
        self, folder: Path, *flags: str, environment: dict[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self.folder = folder
        ports = ("--grpc-port", "0", "--http-port", "0", "--telemetry-port", "0")
        command = [sys.executable, "-m", "strata", "up", "--data-dir", str(folder), *ports, *flags]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "STRATA_RANK_PORTS": RANK_PORTS, **(environment or {})},
            cwd=cwd,
        )

    def __enter__(self) -> "Cluster":
        eventually("strata up", lambda: self._read("endpoints.json") or self._ended(), within_s=60)
        if self.process.poll() is not None:
            raise AssertionError(f"strata up ended: {self.process.communicate()[0]}")
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=240)

    def stop(self, number: int) -> None:
        """Ends it by a signal and waits for the end."""
        self.process.send_signal(number)
        self.process.wait(timeout=240)

    @property
    def endpoints(self) -> dict[str, str]:
        return self._read("endpoints.json") or {}

    def pid_of(self, child: str) -> int | None:
        """The child's pid once it serves."""
        ready = self._read(f"{child}.json")
        return int(ready["pid"]) if ready and psutil.pid_exists(int(ready["pid"])) else None

    def get(self, path: str) -> Any:
        with urlopen(f"{self.endpoints['http']}{path}", timeout=60) as response:
            return json.load(response)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """As the owner: with the token, which a free command line needs."""
        token = (self.folder / "token").read_text().strip()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        request = Request(f"{self.endpoints['http']}{path}", json.dumps(body).encode(), headers)
        with urlopen(request, timeout=60) as response:
            return json.load(response)

    def wait_for_store(self) -> "Cluster":
        """Until the metric store answers: it comes seconds after the page, and questions of a time window need it."""
        self.post("/api/runs/store-probe/points", {"points": [{"metric": "probe", "step": 1, "value": 1}]})

        def answers() -> bool:
            try:
                return bool(self.get("/metrics/store-probe?from_step=1")["series"])
            except HTTPError:
                return False

        eventually("the metric store", answers, within_s=120)
        return self

    def _ended(self) -> bool:
        return self.process.poll() is not None

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            return json.loads((self.folder / name).read_text())  # type: ignore[no-any-return]  # our own file
        except (FileNotFoundError, json.JSONDecodeError):
            return None


def descendants(pid: int) -> Sequence[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)
