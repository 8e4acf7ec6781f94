"""A moment, as the pure state is given it: leases run on `monotonic`, records show `wall`."""

from typing import NamedTuple

from strata.clock import Clock

__all__ = ["Now", "read_clock"]


class Now(NamedTuple):
    """One reading of both clocks, in seconds."""

    monotonic: float
    wall: float


def read_clock(clock: Clock) -> Now:
    """Reads both clocks."""
    return Now(clock.monotonic(), clock.wall())
