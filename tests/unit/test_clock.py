"""Clocks: the real one moves by itself, the manual one only by hand, and a jump of the wall leaves leases alone."""

import pytest

from strata.clock import ManualClock, SystemClock


def test_the_manual_clock_moves_only_by_hand() -> None:
    clock = ManualClock()
    before = clock.monotonic(), clock.wall()
    clock.advance(2.5)
    assert (clock.monotonic(), clock.wall()) == (before[0] + 2.5, before[1] + 2.5)
    clock.jump(-60)
    assert (clock.monotonic(), clock.wall()) == (before[0] + 2.5, before[1] - 57.5)
    with pytest.raises(ValueError, match="cannot go back"):
        clock.advance(-1)


def test_the_system_clock_never_goes_back() -> None:
    clock = SystemClock()
    readings = [clock.monotonic() for _ in range(100)]
    assert readings == sorted(readings)
    assert clock.wall() > 1_700_000_000
