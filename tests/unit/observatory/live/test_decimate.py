"""Decimation: extremes are exact, gaps and bad points stay visible."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from strata.observatory.live.decimate import BUCKET, bucketize, curve_of, lttb, merge_buckets, merge_pairs, thin


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 3_000), points=st.integers(1, 500))
def test_thin_keeps_extremes_bad_counts_and_the_limit(seed: int, count: int, points: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=count)
    values[rng.random(count) < rng.random() * 0.3] = np.nan
    steps = np.sort(rng.integers(0, 10_000, count))
    curve = curve_of(bucketize(steps, np.arange(count), values, np.arange(count)))
    thinned = thin(curve, points)
    assert len(thinned) <= max(1, points)
    if points >= 6 and np.isfinite(values).sum() >= 4:
        assert np.nanmin(thinned.values) == np.nanmin(values)
        assert np.nanmax(thinned.values) == np.nanmax(values)
        assert thinned.bad.sum() == np.isnan(values).sum()


def test_merging_buckets_equals_bucketing_at_once() -> None:
    rng = np.random.default_rng(3)
    values, steps = rng.normal(size=1_000), np.arange(1_000)
    values[100:180] = np.nan
    fine = bucketize(steps, steps, values, np.arange(0, 1_000, 10))
    np.testing.assert_array_equal(merge_buckets(fine, 5), bucketize(steps, steps, values, np.arange(0, 1_000, 50)))


def test_merging_pairs_equals_merging_neighbours_and_an_empty_one_adds_nothing() -> None:
    rng = np.random.default_rng(4)
    values, steps = rng.integers(0, 5, 1_000).astype(float), np.arange(1_000)
    values[100:180] = np.nan
    fine = bucketize(steps, steps, values, np.arange(0, 1_000, 10))
    np.testing.assert_array_equal(merge_pairs(fine[::2], fine[1::2]), merge_buckets(fine, 2))
    nothing = np.zeros(len(fine), BUCKET)
    np.testing.assert_array_equal(merge_pairs(fine, nothing), fine)
    np.testing.assert_array_equal(merge_pairs(nothing, fine), fine)


def test_a_run_of_nan_is_a_gap_with_its_count() -> None:
    values = np.array([1.0, np.nan, np.nan, np.nan, 2.0])
    curve = curve_of(bucketize(np.arange(5), np.arange(5), values, np.array([0, 1, 4])))
    np.testing.assert_array_equal(curve.values, [1.0, np.nan, 2.0])
    assert curve.bad.tolist() == [0, 3, 0]


def test_lttb_keeps_the_ends_and_the_spike() -> None:
    y = np.zeros(1_000)
    y[437] = 9.0
    chosen = lttb(np.arange(1_000.0), y, 50)
    assert len(chosen) == 50
    assert chosen[0] == 0
    assert chosen[-1] == 999
    assert 437 in chosen
    assert (np.diff(chosen) > 0).all()
