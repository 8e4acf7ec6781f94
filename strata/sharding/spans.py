"""Spans of sample numbers: what a reader reads, joined where neighbours meet and cut where shards end.

Pure array work: O(spans log spans) to join, O(spans + shards touched) to cut.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["NO_SPANS", "ShardParts", "Spans", "cut", "joined"]


@dataclass(frozen=True, slots=True)
class Spans:
    """Samples `starts[i]` up to, not including, `stops[i]`; ascending, none touches the next."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @property
    def num_samples(self) -> int:
        return int((self.stops - self.starts).sum())


@dataclass(frozen=True, slots=True)
class ShardParts:
    """Spans by the shard they lie in: samples `starts[i]` up to `stops[i]` are part of shard `shards[i]`."""

    shards: NDArray[np.int64]
    starts: NDArray[np.int64]
    stops: NDArray[np.int64]

    @property
    def num_shards(self) -> int:
        return len(np.unique(self.shards))


_NONE = np.empty(0, dtype=np.int64)
NO_SPANS = Spans(_NONE, _NONE)


def joined(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Spans:
    """Any spans, in any order, as ascending ones; overlapping and touching ones become one, empty ones vanish."""
    filled = stops > starts
    order = np.argsort(starts[filled], kind="stable")
    starts, stops = starts[filled][order], stops[filled][order]
    if not len(starts):
        return NO_SPANS
    reach = np.maximum.accumulate(stops)
    first = np.concatenate(([True], starts[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Spans(starts[first], reach[last])


def cut(spans: Spans, shard_size: int, first: int = 0, last: int | None = None) -> ShardParts:
    """The spans by shard of `shard_size` samples; only shards `first` up to, not including, `last`."""
    low, high = first * shard_size, np.iinfo(np.int64).max if last is None else last * shard_size
    inside = (spans.stops > low) & (spans.starts < high)
    starts, stops = np.maximum(spans.starts[inside], low), np.minimum(spans.stops[inside], high)
    heads, tails = starts // shard_size, (stops - 1) // shard_size
    counts = tails - heads + 1
    before = np.cumsum(counts) - counts
    shards = np.repeat(heads - before, counts) + np.arange(int(counts.sum()), dtype=np.int64)
    return ShardParts(
        shards,
        np.maximum(np.repeat(starts, counts), shards * shard_size),
        np.minimum(np.repeat(stops, counts), (shards + 1) * shard_size),
    )
