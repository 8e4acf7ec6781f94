"""Global batches are a pure function of (order, epoch, step): each sample once, whatever the tail and the lanes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.errors import InvalidArgument
from strata.sharding.lanes import LaneLayout, OrderSpec, locate_many
from strata.sharding.order import EpochOrder, SampleRefs, Tail, default_lanes

SIZES = st.lists(st.integers(0, 60), min_size=1, max_size=30).filter(lambda sizes: sum(sizes) > 0)
LANES = st.sampled_from([1, 2, 3, 8])
PER_LANE = st.integers(1, 5)


def order_of(
    sizes: list[int], lanes: int, per_lane: int, *, tail: Tail = "ragged", shuffle: bool = True, window: int = 2
) -> EpochOrder:
    spec = OrderSpec(manifest="m", seed=3, num_lanes=lanes, window=window, shuffle=shuffle)
    return EpochOrder(LaneLayout(np.array(sizes, dtype=np.int64), spec), lanes * per_lane, tail)


def flat(order: EpochOrder, epoch: int = 0) -> list[tuple[int, int]]:
    batches = [order.batch(epoch, step) for step in range(order.num_steps)]
    return [pair for batch in batches for pair in pairs(batch)]


def pairs(batch: SampleRefs) -> list[tuple[int, int]]:
    return list(zip(batch.shards.tolist(), batch.rows.tolist(), strict=True))


def everything(sizes: list[int]) -> list[tuple[int, int]]:
    return [(shard, row) for shard, size in enumerate(sizes) for row in range(size)]


@given(sizes=SIZES, lanes=LANES, per_lane=PER_LANE, shuffle=st.booleans(), window=st.integers(1, 4))
def test_each_sample_exactly_once(sizes: list[int], lanes: int, per_lane: int, shuffle: bool, window: int) -> None:
    order = order_of(sizes, lanes, per_lane, shuffle=shuffle, window=window)
    assert sorted(flat(order, epoch=1)) == everything(sizes)
    lengths = [order.layout.lane_length(lane) for lane in range(lanes)]
    assert max(lengths) - min(lengths) <= 1


@given(sizes=SIZES, lanes=LANES, per_lane=PER_LANE)
def test_tail_policies_count_what_they_do(sizes: list[int], lanes: int, per_lane: int) -> None:
    dropped = order_of(sizes, lanes, per_lane, tail="drop")
    kept = flat(dropped)
    assert len(set(kept)) == len(kept) == sum(sizes) - dropped.num_dropped
    assert len(kept) % dropped.global_batch == 0
    padded = order_of(sizes, lanes, per_lane, tail="pad")
    batches = [padded.batch(0, step) for step in range(padded.num_steps)]
    assert all(len(batch) == padded.global_batch for batch in batches)
    assert sum(batch.num_padded for batch in batches) == padded.num_padded
    assert {pair for batch in batches for pair in pairs(batch)} == set(everything(sizes))


@given(sizes=SIZES, lanes=LANES, per_lane=PER_LANE, data=st.data())
def test_any_batch_by_random_access(sizes: list[int], lanes: int, per_lane: int, data: st.DataObject) -> None:
    order = order_of(sizes, lanes, per_lane)
    step = data.draw(st.integers(0, order.num_steps - 1))
    before = [pair for earlier in range(step) for pair in pairs(order.batch(0, earlier))]
    assert order.position_of(step * order.per_lane) == len(before)
    assert order.offset_of(len(before)) == step * order.per_lane
    assert pairs(order_of(sizes, lanes, per_lane).batch(0, step)) == flat(order)[len(before) :][: order.global_batch]


@given(sizes=SIZES, first=PER_LANE, second=PER_LANE, data=st.data())
def test_the_global_batch_may_change_in_mid_epoch(
    sizes: list[int], first: int, second: int, data: st.DataObject
) -> None:
    small, large = order_of(sizes, 4, first), order_of(sizes, 4, second)
    step = data.draw(st.integers(0, small.num_steps))
    seen = [pair for earlier in range(step) for pair in pairs(small.batch(0, earlier))]
    offset = small.offset_of(small.position_of(step * small.per_lane))
    while large.steps_from(offset):
        seen += pairs(large.batch_at(0, offset))
        offset += large.per_lane
    assert sorted(seen) == everything(sizes)


def test_lanes_keep_their_samples_and_epochs_differ() -> None:
    order = order_of([50] * 20, 4, 5)
    first, second = [locate_many([order.lane(2, epoch)], 0, 250)[:2] for epoch in (0, 1)]
    assert set(zip(*(part.tolist() for part in first), strict=True)) == set(
        zip(*(part.tolist() for part in second), strict=True)
    )
    assert flat(order, 0) != flat(order, 1)


def test_unshuffled_single_lane_is_the_dataset_as_it_lies() -> None:
    assert flat(order_of([3, 0, 4], 1, 2, shuffle=False)) == everything([3, 0, 4])


def test_golden_batches() -> None:
    order = order_of([7, 5, 9, 4], 2, 3)
    assert order.spec.digest == "8bc42671df88398313ad414e"
    assert pairs(order.batch(1, 0)) == [(3, 3), (3, 1), (3, 2), (2, 6), (2, 2), (1, 2)]
    assert pairs(order.batch(1, 1)) == [(3, 0), (2, 0), (0, 0), (1, 0), (2, 5), (2, 3)]
    assert pairs(order.batch(1, order.num_steps - 1)) == [(0, 3)]


def test_batches_mix_about_as_many_shards_as_a_global_shuffle() -> None:
    """1.28 M samples in shards of 1,000, batches of 256: a global shuffle has 232 distinct shards, a window of 8: 8."""
    order = order_of([1000] * 1280, 64, 4, window=8)
    distinct = np.mean([len(np.unique(order.batch(0, step).shards)) for step in range(1000, 1020)])
    assert distinct > 195


def test_neighbouring_samples_are_as_rare_as_in_a_global_shuffle() -> None:
    order = order_of([1000] * 128, 64, 4, window=8)
    numbers = np.concatenate([batch.shards * 1000 + batch.rows for batch in map(order.batch, [0] * 200, range(200))])
    kept = int(np.count_nonzero(np.diff(numbers) == 1))
    # Neighbours inside a lane of 2,000 samples come 64 times as often as in 128,000; 3 of 4 pairs are in one lane.
    expected = len(numbers) * 0.75 / 2000
    assert abs(kept - expected) / expected**0.5 < 4


def test_default_lanes_divide_the_batch_and_serve_every_worker() -> None:
    assert default_lanes(256, 4) == 64
    assert default_lanes(96, 3) == 48
    assert default_lanes(7, 1) == 7
    assert default_lanes(1000, 100) == 100
    assert default_lanes(97 * 2, 70) == 97
    assert default_lanes(3, 8) == 3


def test_bad_shapes_are_refused() -> None:
    layout = LaneLayout(np.array([10]), OrderSpec(manifest="m", seed=0, num_lanes=4))
    with pytest.raises(InvalidArgument, match="10 is not a multiple of the 4 lanes"):
        EpochOrder(layout, 10)
    with pytest.raises(InvalidArgument, match="'wrap'"):
        EpochOrder(layout, 8, "wrap")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidArgument, match="position 3"):
        EpochOrder(layout, 8).offset_of(3)
    with pytest.raises(InvalidArgument, match="ends before"):
        EpochOrder(layout, 8).batch(0, 2)
