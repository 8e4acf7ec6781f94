"""The live cache: exact while it is small, exact extremes for ever, bounded always."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata.observatory.live.cache import NUM_BUCKETS, SeriesCache
from strata.observatory.live.decimate import BUCKET, bucketize
from strata.observatory.live.tally import SeriesStats


def feed(cache: SeriesCache, number: int, values: list[float], start: int = 0) -> None:
    count = len(values)
    steps = np.arange(start, start + count)
    cache.apply(np.full(count, number), steps, steps + 1_000, np.array(values, float))


def test_a_short_series_comes_back_as_it_went_in() -> None:
    cache = SeriesCache(max_series=4)
    values = [0.5, float("nan"), 2.0, float("inf"), -1.0]
    feed(cache, 3, values)
    curve = cache.curve(3)
    assert curve.steps.tolist() == [0, 1, 2, 3, 4]
    assert curve.times.tolist() == [1000, 1001, 1002, 1003, 1004]
    np.testing.assert_array_equal(curve.values, [0.5, np.nan, 2.0, np.nan, -1.0])
    assert curve.bad.tolist() == [0, 1, 0, 1, 0]
    assert cache.is_raw(3)
    assert cache.stats(3) == SeriesStats(5, 2, 4, 1004, -1.0, -1.0, 2.0)


@settings(max_examples=40, deadline=None)
@given(
    data=st.data(),
    sizes=st.lists(st.integers(1, 900), min_size=1, max_size=12),
)
def test_chunks_of_any_size_keep_extremes_counts_and_bound(data: st.DataObject, sizes: list[int]) -> None:
    """Whatever the cuts: two series beside each other, global and bucket extremes exact, at most 2,000 points."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    cache = SeriesCache(max_series=2)
    fed: dict[int, list[np.ndarray[tuple[int], np.dtype[np.float64]]]] = {0: [], 1: []}
    for size in sizes:
        numbers = rng.integers(0, 2, size)
        values = rng.normal(size=size)
        values[rng.random(size) < 0.05] = np.nan
        steps = np.arange(size)
        cache.apply(numbers, steps, steps, values)
        for number in (0, 1):
            fed[number].append(values[numbers == number])
    for number, parts in fed.items():
        values = np.concatenate(parts)
        if len(values) == 0:
            continue
        curve, stats = cache.curve(number), cache.stats(number)
        assert len(curve) <= 2000
        assert stats.total_points == len(values)
        assert stats.nan_count == np.isnan(values).sum() == curve.bad.sum()
        if np.isfinite(values).any():
            assert np.nanmin(curve.values) == np.nanmin(values)
            assert np.nanmax(curve.values) == np.nanmax(values)
            assert np.nanmin(curve.min) == np.nanmin(values)
        for points in (50, 333):
            thinner = cache.curve(number, points)
            assert len(thinner) <= points
            assert thinner.bad.sum() == stats.nan_count


def test_a_long_series_stays_in_its_row_and_ends_with_its_newest_point() -> None:
    cache = SeriesCache(max_series=1)
    rng = np.random.default_rng(7)
    values = rng.normal(size=100_000).tolist()
    for start in range(0, len(values), 7_001):
        feed(cache, 0, values[start : start + 7_001], start)
    curve = cache.curve(0)
    assert NUM_BUCKETS // 2 < len(curve) <= 2000
    assert curve.steps[-1] == 99_999
    assert curve.values[-1] == values[-1]
    assert (np.diff(curve.steps) >= 0).all()
    assert not cache.is_raw(0)


def test_constant_and_returning_steps_keep_every_point() -> None:
    cache = SeriesCache(max_series=1)
    steps = np.array([0, 0, 0, 5, 6, 5, 6])
    times = np.arange(7) + 10
    cache.apply(np.zeros(7, int), steps, times, np.arange(7.0))
    curve = cache.curve(0)
    assert list(zip(curve.steps.tolist(), curve.times.tolist(), strict=True)) == [
        (0, 10), (0, 11), (0, 12), (5, 13), (5, 15), (6, 14), (6, 16),
    ]  # fmt: skip


def test_a_full_cache_counts_points_without_a_row_and_never_shows_half_a_series() -> None:
    cache = SeriesCache(max_series=2)
    numbers = np.array([5, 9, 7, 5, 7])
    assert cache.count_new(numbers) == 3
    assert cache.apply(numbers, np.arange(5), np.arange(5), np.arange(5.0)) == 1
    assert cache.curve(5).values.tolist() == [0.0, 3.0]
    assert cache.stats(9) == SeriesStats(1, 0, 1, 1, 1.0, 1.0, 1.0)
    cache.evict([5])
    assert not cache.has(5)
    assert cache.stats(5) == SeriesStats(2, 0, 3, 3, 3.0, 0.0, 3.0)
    assert cache.apply(np.array([9]), np.array([2]), np.array([2]), np.array([4.0])) == 1
    assert cache.stats(9).total_points == 2
    assert not cache.has(9), "its first point is in the store only"


def test_a_loaded_series_goes_on_where_the_store_left_it() -> None:
    cache = SeriesCache(max_series=1)
    steps = np.arange(5_000)
    values = np.sin(steps / 50.0)
    buckets = bucketize(steps, steps, values, np.arange(0, 5_000, 6))
    assert buckets.dtype == BUCKET
    assert cache.load(0, buckets, SeriesStats(5_000, 0, 4_999, 4_999, float(values[-1]), -1.0, 1.0))
    feed(cache, 0, [10.0] * 3_000, 5_000)
    curve = cache.curve(0)
    assert cache.stats(0).total_points == 8_000
    assert np.nanmin(curve.values) == values.min()
    assert np.nanmax(curve.values) == 10.0
    assert len(curve) <= 2000
    assert curve.steps[-1] == 7_999


@pytest.mark.parametrize("count", [0, 1, 997, 998, 999, 1996, 1997])
def test_the_edges_of_a_row(count: int) -> None:
    cache = SeriesCache(max_series=1)
    feed(cache, 0, [float(value) for value in range(count)])
    if count:
        assert cache.curve(0).values.max() == count - 1
        assert cache.is_raw(0) == (count <= NUM_BUCKETS)


def test_many_series_that_are_fed_alike_do_not_all_merge_in_one_tick() -> None:
    """What is shown is the same as for a series alone, but for its width."""
    count, cache = 1_000, SeriesCache(max_series=1_000)
    numbers = np.tile(np.arange(count), 10)
    widened = []
    for start in range(0, 1_000, 10):
        steps = np.repeat(np.arange(start, start + 10), count)
        cache.apply(numbers, steps, steps, (steps % 97) + numbers * 100.0)
        widened.append(sum(not cache.is_raw(number) for number in range(count)))
    assert max(np.diff(widened)) <= 256
    for number in (0, 500, 999):
        curve, stats = cache.curve(number), cache.stats(number)
        assert stats.total_points == 1_000
        assert (curve.values.min(), curve.values.max()) == (number * 100.0, number * 100.0 + 96)
        assert (curve.steps[0], curve.steps[-1]) == (0, 999)
