"""The coordinator's pulse: a few times a second it lets the state look at the clock. It also notices when its own loop
was stalled, its journal was away, or what others said lies unread, and then gives everybody a fresh term instead of
declaring them dead.
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
_UNREAD_S = 0.3  # less than the half second in which a rank that was cut off must be heard again (state/agents.py)


async def run_ticker(
    coordinator: Coordinator, then: Callable[[], None], unread_s: Callable[[], float] = lambda: 0.0
) -> None:
    """Runs until it is cancelled; `then` is called with every beat. `unread_s` says how long what somebody has said
    waits to be read: a busy loop turns often, and yet a beat may lie there for longer than a lease."""
    busy_s, was_steady, was_read = 0.0, True, True
    while True:
        asleep_at = time.monotonic()
        await asyncio.sleep(_INTERVAL_S)
        lag = time.monotonic() - asleep_at - _INTERVAL_S + busy_s
        coordinator.meter.loop_lag_ms = lag * 1e3
        steady, unread = coordinator.is_steady(), unread_s()
        read = unread <= _STALL_S
        if lag > _STALL_S:
            _log.warning("the event loop stood still for %.1f s; every lease gets a fresh term", lag)
        elif was_read and not read:
            _log.warning("the event loop is %.1f s behind its peers; leases get fresh terms until it is not", unread)
        elif steady and not was_steady:
            _log.warning("the journal is back; every lease gets a fresh term")
        if lag > _STALL_S or unread > _UNREAD_S or steady != was_steady:
            coordinator.state.renew_leases(coordinator.now())
        busy_s, was_steady, was_read = tick(coordinator) if steady else 0.0, steady, read
        then()


def tick(coordinator: Coordinator) -> float:
    """One look at the clock. Returns the seconds for which nobody else was served."""
    started = time.perf_counter()
    coordinator.apply(c.Tick())
    return time.perf_counter() - started
