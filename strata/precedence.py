"""Who goes first where processes of ours share cores: the coordinator before others, the observatory after them.

A barrier wants both cores of a small host several times within two milliseconds, and the observatory works in bursts
of fifty. What the kernel is asked for is measured in docs/adr/0008; where it refuses, everybody is equal as before.
"""

import contextlib
import ctypes
import logging
import os
import platform
import sys
import threading
from pathlib import Path

__all__ = ["go_after_others", "go_first", "share_of_session"]

_log = logging.getLogger(__name__)

_CALLS = {"x86_64": 314, "aarch64": 274}  # sched_setattr, for which not every C library has a function
_RESET_ON_FORK = 1
# Since Linux 6.12 a thread has slices of the length that it asks for, 0.1 to 100 ms. Its share stays the same, but who
# has short ones is let in at once where somebody with longer ones runs. Older kernels take no notice.
_SHORT_NS, _LONG_NS = 100_000, 20_000_000
_REAL_TIME = 1  # the lowest such priority; takes privileges, as do levels below 0
_FIRST = -10
_AFTER = 5  # a quarter of a core that somebody else wants whole; the page stays alive beside any training


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("slice_ns", ctypes.c_uint64),
        ("deadline_ns", ctypes.c_uint64),
        ("period_ns", ctypes.c_uint64),
    )


def go_first() -> bool:
    """For this thread alone: neither threads nor processes that it starts have it from here. False when more than
    shorter slices takes a right that this process does not have."""
    nice = _niceness()
    if nice is None:
        return True
    if nice == 0 and _go_at_once():
        share_of_session(_FIRST)
        return True
    _tell(_ask(os.SCHED_OTHER, nice=nice, slice_ns=_SHORT_NS, flags=_RESET_ON_FORK))
    return nice != 0


def _go_at_once() -> bool:
    """A thread of the fair class that is woken while it goes to sleep may wait for a tick behind one that should give
    way to it. One of the real-time class does not; where only that is refused, a large share is better than none."""
    wishes = (
        (os.SCHED_RR, {"priority": _REAL_TIME}),
        (os.SCHED_OTHER, {"nice": _FIRST, "slice_ns": _SHORT_NS}),
    )
    return any(_ask(policy, **wish, flags=_RESET_ON_FORK) == 0 for policy, wish in wishes)


def go_after_others() -> None:
    """For this thread, and all threads and processes that it starts from now on."""
    nice = _niceness()
    if nice is not None:
        _tell(_ask(os.SCHED_BATCH, nice=min(nice + _AFTER, 19), slice_ns=_LONG_NS))
        share_of_session(min(nice + _AFTER, 19))


def share_of_session(nice: int) -> None:
    """Kernels that group tasks by session share between the groups, whatever the levels inside of them. Only where the
    session is this process's own, as under `strata up`, and for its main thread, which speaks for all."""
    if os.getsid(0) == os.getpid() and threading.current_thread() is threading.main_thread():
        with contextlib.suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(nice))


def _niceness() -> int | None:
    """None where there is nothing to ask for: another system, or somebody chose another kind of priority for us."""
    if sys.platform != "linux" or platform.machine() not in _CALLS or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return None
    return os.getpriority(os.PRIO_PROCESS, 0)


def _ask(policy: int, **wish: int) -> int:
    """The kernel's errno, 0 when it agrees."""
    attributes = _Attributes(size=ctypes.sizeof(_Attributes), policy=policy, **wish)
    call = ctypes.c_long(_CALLS[platform.machine()])
    failed = ctypes.CDLL(None, use_errno=True).syscall(call, 0, ctypes.byref(attributes), 0)
    return ctypes.get_errno() if failed else 0


def _tell(refused: int) -> None:
    if refused:
        _log.debug("the kernel keeps its own order of processes: %s", os.strerror(refused))
