"""Where a rank that makes no step stands. Its SDK prints stacks to stderr, thus to the rank's log, when the agent sends
it a signal; that needs no lock of the interpreter. Of other programs the kernel knows a little.
"""

import asyncio
import contextlib
import ctypes
import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from strata.types.workers import ALL_STACKS_SIGNAL, STACK_SIGNAL

__all__ = ["Standing", "is_stopped", "print_all_stacks", "take_stack"]

_WAIT_S = 2.0
_LOOK_S = 0.02
_MAX_BYTES = 1024 * 1024
_HEADER = re.compile(r"(Stack|(Current thread|Thread) 0x[0-9a-f]+.*) \(most recent call first\):")
_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)')
_OURS = f"{Path(__file__).parents[1]}/"
_LIBRARY = re.compile(r"/(site|dist)-packages/|/lib(64)?/python\d|^<frozen ")
# Python files whose calls wait for other ranks. A backward pass counts: its hooks sum gradients over all ranks.
_MEETINGS = re.compile(rf"{re.escape(_OURS)}(worker/collective|client/tie)|/torch/(distributed|autograd|nn/parallel)/")


_libc = ctypes.CDLL(None) if hasattr(ctypes.CDLL(None), "tgkill") else None  # musl has none


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the main thread stood, in words, and whether it waited for other ranks there."""

    where: str
    waiting: bool = False


def is_stopped(pid: int) -> bool:
    """True while a signal such as SIGSTOP keeps the process from running."""
    return _state(pid) == "T"


async def take_stack(pid: int, stderr: Path, *, wake: bool) -> Standing:
    """Has the process print the stack of its main thread to `stderr` and reads it there. A stopped process prints
    nothing; with `wake` it is continued for that, which is for one that is killed next."""
    stopped = is_stopped(pid)
    text = "" if stopped and not wake else await _printed(pid, stderr, STACK_SIGNAL, stopped=stopped)
    return _parse(text, stopped=stopped) if text else _by_kernel(pid, stopped=stopped)


async def print_all_stacks(pid: int, stderr: Path) -> None:
    """Has the process print those of all its threads, which it may not survive: for one that is killed next."""
    await _printed(pid, stderr, ALL_STACKS_SIGNAL)


async def _printed(pid: int, stderr: Path, number: int, *, stopped: bool = False) -> str:
    """What the process prints when it gets this signal; nothing when it does not know it, or takes too long."""
    printer = _printer(pid, number)
    if printer is None:
        return ""
    start = _size(stderr)
    before = _blocking(printer, number)
    with contextlib.suppress(ProcessLookupError):
        _send(printer, number)
        if stopped:  # what waits for it is done before it goes on
            os.kill(printer, signal.SIGCONT)
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline and _state(printer):
        await asyncio.sleep(_LOOK_S)
        text = _read(stderr, start)
        if _HEADER.search(text) and _blocking(printer, number) <= before:
            return text
    return ""


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _read(path: Path, start: int) -> str:
    try:
        with path.open("rb") as file:
            file.seek(start)
            return file.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""


def _parse(text: str, *, stopped: bool) -> Standing:
    frames: list[re.Match[str]] = []
    for line in text.splitlines():
        if _HEADER.match(line):
            frames = []
        elif found := _FRAME.match(line):
            frames.append(found)
    if not frames:
        return Standing(_stop_words(stopped=stopped))
    own = next((frame for frame in frames if not _is_library(frame["file"])), frames[0])
    where = _words(frames[0])
    if own is not frames[0]:
        where += f", called from {_words(own)}"
    waiting = any(_MEETINGS.search(frame["file"]) for frame in frames)
    return Standing(", ".join(filter(None, (where, _stop_words(stopped=stopped)))), waiting and not stopped)


def _is_library(file: str) -> bool:
    return file.startswith(_OURS) or _LIBRARY.search(file) is not None


def _words(frame: re.Match[str]) -> str:
    return f"{frame['file']}:{frame['line']} ({frame['function']})"


def _stop_words(*, stopped: bool) -> str:
    return "stopped by a signal" if stopped else ""


def _by_kernel(pid: int, *, stopped: bool) -> Standing:
    if stopped:
        return Standing(_stop_words(stopped=True))
    with contextlib.suppress(OSError):
        function = Path(f"/proc/{pid}/wchan").read_text().strip()
        if function not in ("", "0"):
            return Standing(f"the kernel's {function}")
    return Standing("")


# --- what the kernel knows


def _state(pid: int) -> str:
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def _printer(pid: int, number: int) -> int | None:
    """The process that prints stacks: the rank itself, or what a shell has started as the rank. To others the signal
    would be the end."""
    if _catches(pid, number):
        return pid
    with contextlib.suppress(psutil.Error):
        children = psutil.Process(pid).children(recursive=True)
        return next((child.pid for child in children if _catches(child.pid, number)), None)
    return None


def _send(pid: int, number: int) -> None:
    """To the main thread, whose stack is wanted: of a process that was stopped any thread might take it."""
    if _libc is None or _libc.tgkill(pid, pid, number):
        os.kill(pid, number)


def _catches(pid: int, number: int) -> bool:
    return _has_bit(Path(f"/proc/{pid}/status"), "SigCgt", number)


def _blocking(pid: int, number: int) -> int:
    """How many threads do not take the signal now; one more while the stacks are being printed, or still to be."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return 0
    pending = any(_has_bit(Path(f"/proc/{pid}/status"), field, number) for field in ("SigPnd", "ShdPnd"))
    return pending + sum(_has_bit(thread / "status", "SigBlk", number) for thread in threads)


def _has_bit(status: Path, field: str, number: int) -> bool:
    with contextlib.suppress(OSError):
        found = re.search(rf"^{field}:\s*([0-9a-f]+)$", status.read_text(), re.MULTILINE)
        return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)
    return False
