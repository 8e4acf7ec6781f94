"""Tasks that live as long as the process. One that ends by an exception is a bug that must not go unnoticed: the loop's
exception handler is told, and the server stops with an error instead of limping on.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any

__all__ = ["FATAL", "Part", "cancel", "spawn"]

_log = logging.getLogger(__name__)

# The key under which the loop's exception handler finds the name of the task that died.
FATAL = "strata_fatal"
# A library can lose a cancellation that comes in the turn in which what it waited for is there (asyncio.wait_for of
# Python 3.11 does): the task runs on, and asking once would mean waiting for ever.
_AGAIN_S = 1.0


def spawn(coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """A task whose death is reported at once."""
    task = asyncio.create_task(coroutine, name=name)
    task.add_done_callback(_report)
    return task


async def cancel(task: asyncio.Task[None] | None) -> None:
    """Ends a task of `spawn` and waits for its end. A task that loses the cancellation is cancelled again."""
    while task is not None and not task.done():
        if task.cancelling():
            _log.warning("%s goes on though it was cancelled, and is cancelled again", task.get_name())
        task.cancel()
        await asyncio.wait([task], timeout=_AGAIN_S)


class Part(ABC):
    """One task from `start` to `stop`, named like its class; a subclass says in `_run` what it does."""

    _task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = spawn(self._run(), type(self).__name__)

    async def stop(self) -> None:
        await cancel(self._task)

    @abstractmethod
    async def _run(self) -> None: ...


def _report(task: asyncio.Task[None]) -> None:
    if task.cancelled() or task.exception() is None:
        return
    context = {"message": f"{task.get_name()} died", "exception": task.exception(), FATAL: task.get_name()}
    task.get_loop().call_exception_handler(context)
