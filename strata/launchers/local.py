"""Processes of this host, each the leader of its own session, so that it outlives whoever started it.

A handle is pid, start time and boot: a pid that was given to somebody else is never taken for ours.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, Protocol

import psutil

from strata.errors import InvalidArgument
from strata.launchers.base import Exit, LaunchSpec, Standing

__all__ = ["TAG_VARIABLE", "Child", "LocalLauncher", "pid_of"]

TAG_VARIABLE = "STRATA_INCARNATION"
_POLL_S = 0.02
_START_FIELD = 22 - 3  # of /proc/<pid>/stat, counted from the field after the name


def pid_of(handle: str) -> int:
    return int(handle.partition(":")[0])


class Child(Protocol):
    """A process whose parent is this one, as `subprocess.Popen` has it."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...


class LocalLauncher:
    """Knows the exit codes of the processes it started itself; of adopted ones only that they are gone."""

    def __init__(self) -> None:
        self._children: dict[str, Child] = {}

    def prepare(self, spec: LaunchSpec) -> None:
        folder = spec.working_dir or None
        if folder and not Path(folder).is_dir():
            raise InvalidArgument(f"the working folder {folder!r} does not exist on this host")
        program = spec.argv[0]
        path = spec.env.get("PATH", os.environ.get("PATH", ""))
        found = program if "/" in program else shutil.which(program, path=path)
        if not found or not os.access(Path(folder or ".") / found, os.X_OK):
            raise InvalidArgument(f"the program {program!r} does not exist on this host, or may not be run")
        script = spec.argv[1] if len(spec.argv) > 1 else ""
        if script.endswith(".py") and not (Path(folder or ".") / script).is_file():
            raise InvalidArgument(f"the script {script!r} does not exist in {folder or Path.cwd()}")

    def start(self, spec: LaunchSpec) -> str:
        """Output goes to files, not pipes: the death of the starter must not break its children's writes."""
        with contextlib.ExitStack() as stack:
            out, err = (stack.enter_context(_append(path)) for path in (spec.stdout, spec.stderr))
            try:
                child = subprocess.Popen(
                    spec.argv,
                    env={**spec.env, TAG_VARIABLE: spec.tag},
                    cwd=spec.working_dir or None,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
            except OSError as error:
                raise InvalidArgument(f"{spec.argv[0]!r} cannot be started: {error.strerror}") from None
        return self.keep(child)

    def keep(self, child: Child) -> str:
        """The handle of a process of ours that is the leader of its own session, from now on watched here."""
        handle = f"{child.pid}:{_start_time(child.pid)}:{_boot()}"
        self._children[handle] = child
        return handle

    def poll(self, handle: str) -> Exit | None:
        child = self._children.get(handle)
        if child is not None:
            code = child.poll()
            return None if code is None else Exit(code=code)
        pid, start, boot = handle.split(":")
        if boot == _boot() and _start_time(int(pid)) == start != "":
            return None
        return Exit(code=None, reason="it ended while nobody watched")

    def describe(self, handle: str) -> Standing:
        return Standing(text=f"pid {pid_of(handle)} {'runs' if self.poll(handle) is None else 'is gone'}")

    def signal(self, handle: str, number: int) -> None:
        """Signals the whole process group while its leader lives. Later only SIGKILL is sent, to clear what it left
        behind."""
        if self.poll(handle) is None or (number == signal.SIGKILL and handle in self._children):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid_of(handle), number)

    def stop(self, handle: str, grace_s: float) -> Exit:
        self.signal(handle, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while (ended := self.poll(handle)) is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        self.signal(handle, signal.SIGKILL)
        while ended is None:
            time.sleep(_POLL_S)
            ended = self.poll(handle)
        self.forget(handle)
        return ended

    def adopt(self, tag: str) -> str | None:
        """The handle of a running program with this tag in its environment, for a starter that lost it; or None."""
        for process in psutil.process_iter():
            try:
                if process.environ().get(TAG_VARIABLE) == tag and os.getsid(process.pid) == process.pid:
                    return f"{process.pid}:{_start_time(process.pid)}:{_boot()}"
            except (psutil.Error, OSError):
                continue
        return None

    def forget(self, handle: str) -> None:
        """Drops the child of this handle; its end is known."""
        self._children.pop(handle, None)


def _append(path: Path | None) -> "contextlib.AbstractContextManager[int | IO[bytes]]":
    if path is None:
        return contextlib.nullcontext(subprocess.DEVNULL)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab")


def _start_time(pid: int) -> str:
    """In ticks since the boot; empty when there is no such process, or only its remains."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[_START_FIELD]


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
