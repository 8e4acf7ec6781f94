"""The heart beat of the live view: every 250 ms what came in is applied, encoded once and published."""

import asyncio
import logging
from collections.abc import Callable

from strata.observatory.background import cancel, spawn

__all__ = ["TICK_S", "Ticker"]

_log = logging.getLogger(__name__)
TICK_S = 0.25


class Ticker:
    """Calls its steps in order on each tick. A step that fails is logged and does not stop the others."""

    def __init__(self, steps: list[Callable[[], object]], interval_s: float = TICK_S) -> None:
        self._steps = steps
        self._interval_s = interval_s
        self._task: asyncio.Task[None] | None = None
        self.failures = 0

    async def start(self) -> None:
        self._task = spawn(self._run(), "ticker")

    async def stop(self) -> None:
        await cancel(self._task)

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            # By the clock, whatever the last tick took; after one that took too long the loop gets a moment.
            due = max(due + self._interval_s, clock() + self._interval_s / 10)
            await asyncio.sleep(due - clock())
            for step in self._steps:
                try:
                    step()
                except Exception:
                    self.failures += 1
                    _log.exception("a step of the live view failed")
