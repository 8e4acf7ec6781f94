"""The coordinator's figures: measured over a window, and None where nothing was measured."""

import pytest

from strata.clock import ManualClock
from strata.coordinator.engine.meter import BARRIER_BOUNDS_MS, Meter


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_nothing_measured_is_none(clock: ManualClock) -> None:
    meter = Meter(clock)
    assert meter.requests_per_s() is None
    assert meter.barrier_latency_p99_ms() is None
    assert meter.barrier_wait_p99_ms() is None
    assert meter.shard_assignment_ms() is None
    assert meter.journal_commit_p99_ms() is None
    assert meter.checkpoint_mb_per_s() is None


def test_requests_per_second_cover_the_last_ten_seconds(clock: ManualClock) -> None:
    meter = Meter(clock)
    for _ in range(30):
        meter.count("Heartbeat", 50)
        clock.advance(1)
    rate = meter.requests_per_s()
    assert rate is not None
    assert 45 <= rate <= 55
    clock.advance(60)
    assert meter.requests_per_s() == 0.0
    assert meter.requests == {"Heartbeat": 1500}


def test_barriers_have_a_tail_and_a_histogram(clock: ManualClock) -> None:
    meter = Meter(clock)
    for latency in [0.1] * 98 + [40.0, 40.0, 5_000.0]:
        meter.barrier(latency, latency * 9)
    assert meter.barrier_latency_p99_ms() == 40.0
    assert meter.barrier_wait_p99_ms() == 400.0
    buckets = dict(zip((*BARRIER_BOUNDS_MS, "more"), meter.barrier_buckets, strict=True))
    assert (buckets[0.5], buckets[50.0], buckets["more"]) == (98, 2, 1)
    clock.advance(61)
    assert meter.barrier_latency_p99_ms() is None, "the window has passed"
    assert sum(meter.barrier_buckets) == 101, "but a histogram counts for ever"
    assert meter.barrier_sum_ms == pytest.approx(98 * 0.1 + 2 * 40.0 + 5_000.0)


def test_the_wait_at_a_barrier_is_never_below_its_latency(clock: ManualClock) -> None:
    meter = Meter(clock)
    meter.barrier(12.66, 0.0)
    meter.barrier(0.5, 5.0)
    latency, wait = meter.barrier_latency_p99_ms(), meter.barrier_wait_p99_ms()
    assert latency is not None
    assert wait is not None
    assert wait >= latency


def test_checkpoints_count_only_when_their_time_is_known(clock: ManualClock) -> None:
    meter = Meter(clock)
    meter.checkpoint(10_000_000, None)
    assert meter.checkpoint_mb_per_s() is None
    meter.checkpoint(10_000_000, 2.0)
    assert meter.checkpoint_mb_per_s() == 5.0


def test_the_newest_rebalance_and_the_commits(clock: ManualClock) -> None:
    meter = Meter(clock)
    for seconds in (0.009, 0.003):
        with meter.dealing():
            clock.advance(seconds)
    meter.commits([0.001, 0.002])
    assert meter.journal_commit_p99_ms() == 2.0
    clock.advance(3600)
    assert meter.shard_assignment_ms() == pytest.approx(3.0), "the last one counts until there is another"
