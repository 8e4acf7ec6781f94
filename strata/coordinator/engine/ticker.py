"""The coordinator's pulse: a few times a second it lets the state look at the clock. It also notices when its own loop
was stalled, and then gives everybody a fresh term instead of declaring them dead.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.state import commands as c

__all__ = ["run_ticker"]

_log = logging.getLogger(__name__)

_INTERVAL_S = 0.2
_STALL_S = 1.0


async def run_ticker(coordinator: Coordinator, then: Callable[[], None]) -> None:
    """Runs until it is cancelled; `then` is called with every beat."""
    busy_s = 0.0
    while True:
        asleep_at = time.monotonic()
        await asyncio.sleep(_INTERVAL_S)
        lag = time.monotonic() - asleep_at - _INTERVAL_S + busy_s
        coordinator.meter.loop_lag_ms = lag * 1e3
        if lag > _STALL_S:
            _log.warning("the event loop stood still for %.1f s; every lease gets a fresh term", lag)
            coordinator.state.renew_leases(coordinator.now())
        busy_s = tick(coordinator)
        await coordinator.settled()
        then()


def tick(coordinator: Coordinator) -> float:
    """One look at the clock. Returns the seconds for which nobody else was served."""
    started = time.perf_counter()
    coordinator.apply(c.Tick())
    return time.perf_counter() - started
