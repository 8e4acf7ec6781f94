"""Stopping in time: each step has a limit and all together have one; a step that does not end is named, with the place
where it waits, and the next one is taken. Nothing here knows what the steps do.
"""

import asyncio
import contextlib
import faulthandler
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["Teardown", "end_surely", "print_stacks_on_signal"]

_log = logging.getLogger(__name__)
_STEP_S = 4.0
_TOTAL_S = 13.0
_LEAST_S = 0.3
# From the signal to the end of the process, whatever happens.
_HARD_S = 15.0


class Teardown(contextlib.AsyncExitStack):
    """An exit stack whose steps end in time. What is pushed the usual way has no limit: for calls that cannot wait."""

    def __init__(self, total_s: float = _TOTAL_S) -> None:
        super().__init__()
        self._total_s = total_s
        self._ends_at: float | None = None

    def step(self, name: str, stop: Callable[[], Awaitable[None]], limit_s: float = _STEP_S) -> None:
        """`stop` is awaited for `limit_s` at most, and shorter when earlier steps have used up the time."""
        self.push_async_callback(self._take, name, stop, limit_s)

    async def _take(self, name: str, stop: Callable[[], Awaitable[None]], limit_s: float) -> None:
        now = asyncio.get_running_loop().time()
        if self._ends_at is None:
            self._ends_at = now + self._total_s
        limit_s = min(limit_s, max(self._ends_at - now, _LEAST_S))
        task = asyncio.ensure_future(stop())
        done, _ = await asyncio.wait([task], timeout=limit_s)
        if done:
            task.result()
            return
        _log.error("%s did not stop within %.1f s and is left behind; it waits at %s", name, limit_s, _place(task))
        task.cancel()


def end_surely(loop: asyncio.AbstractEventLoop, limit_s: float = _HARD_S) -> None:
    """From now on the process has that long to end. If it does not, every stack is printed and it is ended: what was
    acknowledged is in the spool, and the store leaves by itself when its socket closes."""
    faulthandler.dump_traceback_later(limit_s, exit=True)
    loop.call_later(limit_s * 0.9, _print_tasks, loop)


def print_stacks_on_signal(loop: asyncio.AbstractEventLoop) -> None:
    """SIGUSR1 prints where every thread is, even if the loop is stuck, and where every task waits, if it is not."""
    loop.add_signal_handler(signal.SIGUSR1, _print_tasks, loop)
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=True)


def _print_tasks(loop: asyncio.AbstractEventLoop) -> None:
    lines = [f"{task.get_name()} waits at {_place(task)}\n" for task in asyncio.all_tasks(loop)]
    sys.stderr.write("".join(["Tasks:\n", *sorted(lines)]))
    sys.stderr.flush()


def _place(task: "asyncio.Future[Any]") -> str:
    """The chain of awaits, outermost first."""
    at = task.get_coro() if isinstance(task, asyncio.Task) else None
    places = []
    while at is not None:
        frame = getattr(at, "cr_frame", None) or getattr(at, "gi_frame", None)
        if frame is None:
            break
        places.append(f"{frame.f_code.co_qualname} ({frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno})")
        at = getattr(at, "cr_await", None) or getattr(at, "gi_yieldfrom", None)
    return " > ".join(places) or repr(task)
