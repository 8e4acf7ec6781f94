"""Keeps a few processes running: starts them (the first alone), starts again what dies, stops in reverse order.

Each child runs in a session of its own, so that Ctrl-C reaches the supervisor alone and the order is kept.
"""

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from strata.cli.parent import SUPERVISOR_VARIABLE
from strata.errors import ProcessFailed

__all__ = ["Child", "Supervisor"]

_POLL_S = 0.05
_HEALTHY_S = 5.0  # whoever served this long does not die of its start: it comes back at once
_BACK_OFF_S = (0.0, 0.2, 0.5, 1.0, 2.0, 5.0)
_LOG_LIMIT_BYTES = 20 * 1024 * 1024
_ROOM_BYTES = 64 * 1024  # a disk with less is full


@dataclass(slots=True, kw_only=True)
class Child:
    """One process and how to know that it is ready: it writes `ready_file`, with its pid, once it serves."""

    name: str
    arguments: Callable[[], list[str]]
    ready_file: Path
    log_file: Path
    start_timeout_s: float = 60.0
    stop_timeout_s: float
    may_stand_by: bool = False  # the others need not wait until it leads
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    log_start: int = 0  # where the words of the running process begin
    failures: int = 0
    restart_at: float | None = None
    leader: str = ""  # whom it stands by for
    endpoints: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        _rotate(self.log_file)
        if not _is_of_living(self.ready_file):  # of one that was killed: nobody should go where it listened
            self.ready_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "strata.cli.server", *self.arguments()]
        environment = {**os.environ, SUPERVISOR_VARIABLE: str(os.getpid())}
        with self.log_file.open("ab") as log:
            self.log_start = log.tell()
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        self.started_at = time.monotonic()
        self.restart_at = None
        self.leader = ""

    def ready(self) -> bool:
        """Whether the running process has said where it serves."""
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            written = json.loads(self.ready_file.read_text())
            if self.process is not None and written.get("pid") == self.process.pid:
                self.leader = str(written.pop("standby", ""))
                self.endpoints = {key: str(value) for key, value in written.items() if key != "pid"}
                return not self.leader
        return False

    def wait_ready(self, tell: Callable[[str], None]) -> None:
        """Raises ProcessFailed with what the child said if it ends, or is not ready in time. One that stands by has all
        the time that the leader lives."""
        deadline, told = time.monotonic() + self.start_timeout_s, ""
        while not self.ready():
            if self.leader != told:
                told, deadline = self.leader, math.inf
                tell(f"the {self.name} stands by: {told} leads")
            if self.leader and self.may_stand_by:
                return
            assert self.process is not None
            if self.process.poll() is not None:
                raise ProcessFailed(self.last_words() or f"the {self.name} ended with {self.exit_text()}")
            if time.monotonic() > deadline:
                raise ProcessFailed(
                    f"the {self.name} was not ready within {self.start_timeout_s:g} s", hint=f"See {self.log_file}."
                )
            time.sleep(_POLL_S)

    def restart_after_pause(self) -> None:
        self.restart_at = time.monotonic() + _BACK_OFF_S[min(self.failures, len(_BACK_OFF_S) - 1)]
        self.failures += 1

    def exit_text(self) -> str:
        code = self.process.returncode if self.process else None
        if code is not None and code < 0:
            return f"signal {signal.Signals(-code).name}"
        return f"exit code {code}"

    def last_words(self) -> str:
        """Why the child ended: its last `error:` line, without the word. On a full disk it cannot write one."""
        with self.log_file.open("rb") as log:
            log.seek(max(self.log_start, self.log_file.stat().st_size - 64 * 1024))
            lines = log.read().decode(errors="replace").splitlines()
        found = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        full = shutil.disk_usage(self.log_file.parent).free < _ROOM_BYTES
        return found[-1] if found else f"no room is left in {self.log_file.parent}" if full else ""

    def stop(self) -> None:
        """SIGTERM, then SIGKILL; returns when it is gone."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(self.stop_timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Supervisor:
    """Runs `children` in order until `stop` is asked for. `tell` is given one line for whatever a user should know."""

    def __init__(self, children: list[Child], tell: Callable[[str], None]) -> None:
        self._children = children
        self._tell = tell
        self.stopping = False
        self.started = False

    def start(self) -> None:
        """Starts the first; when it is ready the others, side by side. A failure stops those that run."""
        first, *others = self._children
        try:
            for wave in ([first], others):
                for child in wave:
                    child.start()
                for child in wave:
                    child.wait_ready(self._tell)
        except BaseException:
            self.stop()
            raise
        self.started = True

    @property
    def endpoints(self) -> dict[str, str]:
        """Where the children listen, all together."""
        return {key: value for child in self._children for key, value in child.endpoints.items()}

    def ask_to_stop(self, *_: object) -> None:
        """Also as a handler of signals: during the start they interrupt it."""
        if not self.started:
            raise KeyboardInterrupt
        self.stopping = True

    def watch(self) -> None:
        """Returns after `ask_to_stop`. A child that dies comes back after a pause that grows with its failures."""
        while not self.stopping:
            self.look()
            time.sleep(_POLL_S)

    def look(self) -> None:
        """One look at every child, for a caller with a loop of its own."""
        for child in self._children:
            self._look_after(child)

    def _look_after(self, child: Child) -> None:
        now = time.monotonic()
        if child.restart_at is not None:
            if now >= child.restart_at:
                self._start_again(child)
            return
        assert child.process is not None
        if child.process.poll() is None:
            if child.failures and now - child.started_at > _HEALTHY_S:
                child.failures = 0
            return
        child.restart_after_pause()
        why = child.last_words() if child.process.returncode > 0 else ""
        self._tell(f"{child.name} died ({child.exit_text()}), starting it again{f': {why}' if why else ''}")

    def _start_again(self, child: Child) -> None:
        try:
            child.start()
        except OSError as error:  # no room, no memory, no descriptors: it may pass, and the others still serve
            child.restart_after_pause()
            self._tell(f"{child.name} cannot be started, trying again: {error}")

    def stop(self) -> None:
        """Stops the children in reverse order, each before the next."""
        for child in reversed(self._children):
            child.stop()


def _is_of_living(record: Path) -> bool:
    """Whether another process that still runs wrote it: its place is taken, and the child will say so."""
    try:
        return psutil.pid_exists(int(json.loads(record.read_text())["pid"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _rotate(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists() and file.stat().st_size > _LOG_LIMIT_BYTES:
        file.replace(file.with_suffix(".log.1"))
