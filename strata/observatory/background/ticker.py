"""The heart beat of the live view: every 250 ms what came in is applied, encoded once and published."""

import asyncio
from collections.abc import Callable

from strata.observatory.background.part import Part
from strata.observatory.background.setaside import SetAside

__all__ = ["TICK_S", "Ticker"]

TICK_S = 0.25


class Ticker(Part):
    """Calls its steps, by name, in order on each tick. A step that fails does not stop the others."""

    def __init__(self, steps: dict[str, Callable[[], object]], aside: SetAside) -> None:
        self._steps = steps
        self._aside = aside

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            # By the clock, whatever the last tick took; after one that took too long the loop gets a moment.
            due = max(due + TICK_S, clock() + TICK_S / 10)
            await asyncio.sleep(due - clock())
            for name, step in self._steps.items():
                with self._aside.guard("live view", name):
                    step()
