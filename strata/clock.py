"""Time as a parameter: the system's clock for real runs, a hand-turned one for tests and simulations.

Durations and leases use `monotonic()`; only what people read uses `wall()`. Nothing in the pure layers calls `time`.
"""

import time
from typing import Protocol

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """Two readings, both in seconds. `monotonic` never goes back; `wall` is Unix time and may jump."""

    def monotonic(self) -> float: ...

    def wall(self) -> float: ...


class SystemClock:
    """The machine's own clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


class ManualClock:
    """A clock that moves only when told to: `advance` moves both readings, `jump` the wall alone (as NTP does)."""

    def __init__(self, monotonic: float = 1_000.0, wall: float = 1_700_000_000.0) -> None:
        self._monotonic = monotonic
        self._wall = wall

    def monotonic(self) -> float:
        return self._monotonic

    def wall(self) -> float:
        return self._wall

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"a monotonic clock cannot go back: advance({seconds})")
        self._monotonic += seconds
        self._wall += seconds

    def jump(self, seconds: float) -> None:
        self._wall += seconds
