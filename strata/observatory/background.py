"""Tasks that live as long as the process. One that ends by an exception is a bug that must not go unnoticed: the loop's
exception handler is told, and the server stops with an error instead of limping on.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

__all__ = ["FATAL", "cancel", "spawn"]

# The key under which the loop's exception handler finds the name of the task that died.
FATAL = "strata_fatal"


def spawn(coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """A task whose death is reported at once."""
    task = asyncio.create_task(coroutine, name=name)
    task.add_done_callback(_report)
    return task


async def cancel(task: asyncio.Task[None] | None) -> None:
    """Ends a task of `spawn` and waits for it."""
    if task is None:
        return
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):  # its death was reported when it happened
        await task


def _report(task: asyncio.Task[None]) -> None:
    if task.cancelled() or task.exception() is None:
        return
    context = {"message": f"{task.get_name()} died", "exception": task.exception(), FATAL: task.get_name()}
    task.get_loop().call_exception_handler(context)
