"""Spans of samples: joined and cut without losing or adding one; a layout's lanes are a partition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from strata.sharding.lanes import LaneLayout, OrderSpec
from strata.sharding.order import EpochOrder
from strata.sharding.spans import cut, joined
from strata.sharding.sticky import plan_sticky

PAIRS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=30)


def numbers(starts: list[int], stops: list[int]) -> list[int]:
    return [n for start, stop in zip(starts, stops, strict=True) for n in range(start, stop)]


@given(PAIRS, st.integers(1, 50), st.integers(0, 8), st.integers(1, 12))
def test_joined_and_cut_spans_hold_the_same_samples(
    pairs: list[tuple[int, int]], size: int, first: int, count: int
) -> None:
    starts = np.array([start for start, _ in pairs], dtype=np.int64)
    stops = starts + np.array([length for _, length in pairs], dtype=np.int64)
    spans = joined(starts, stops)
    wanted = sorted(set(numbers(starts.tolist(), stops.tolist())))
    assert numbers(spans.starts.tolist(), spans.stops.tolist()) == wanted
    assert (spans.starts[1:] > spans.stops[:-1]).all()
    assert spans.num_samples == len(wanted)
    whole = cut(spans, size)
    assert numbers(whole.starts.tolist(), whole.stops.tolist()) == wanted
    assert (whole.starts // size == whole.shards).all()
    assert ((whole.stops - 1) // size == whole.shards).all()
    some = cut(spans, size, first, first + count)
    inside = [n for n in wanted if first <= n // size < first + count]
    assert numbers(some.starts.tolist(), some.stops.tolist()) == inside


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=20),
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(1, 4),
    st.booleans(),
)
def test_what_a_rank_reads_in_any_epoch_are_the_samples_of_its_lanes(
    sizes: list[int], num_lanes: int, per_lane: int, world: int, shuffle: bool
) -> None:
    spec = OrderSpec(manifest="m", seed=7, num_lanes=num_lanes, window=2, shuffle=shuffle)
    layout = LaneLayout(np.array(sizes, dtype=np.int64), spec)
    order = EpochOrder(layout, num_lanes * per_lane)
    starts = np.cumsum(sizes) - sizes
    table = plan_sticky(num_lanes, [str(rank) for rank in range(world)])
    seen: list[int] = []
    for rank in range(world):
        lanes = table.units_of(str(rank)).tolist()
        spans = layout.samples_of(lanes)
        told = numbers(spans.starts.tolist(), spans.stops.tolist())
        for epoch in (0, 1):
            batches = [order.batch(epoch, step, lanes) for step in range(order.num_steps)]
            assert sorted(n for batch in batches for n in (starts[batch.shards] + batch.rows).tolist()) == told
        seen += told
    assert sorted(seen) == list(range(sum(sizes)))
