"""A moment, as the pure state is given it: leases run on `monotonic`, records show `wall`."""

from dataclasses import dataclass

from strata.clock import Clock

__all__ = ["Now", "read_clock"]


@dataclass(frozen=True, slots=True)
class Now:
    """One reading of both clocks, in seconds."""

    monotonic: float
    wall: float


def read_clock(clock: Clock) -> Now:
    """Both readings at once."""
    return Now(clock.monotonic(), clock.wall())
