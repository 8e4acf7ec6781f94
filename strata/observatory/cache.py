"""The live picture of every series in bounded memory: at most 998 buckets each, whatever its length.

Buckets cut a series by order of arrival, not by step: constant steps, steps that go back after a restart and absurd
ones all keep their shape, and a bucket never has to be searched. When a row is full, neighbours merge and the width
doubles. Updates are vectorised over series; never called from another thread.
"""

import mmap
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strata.observatory.decimate import (
    BUCKET,
    Buckets,
    Curve,
    Floats,
    Ints,
    bucketize,
    curves_of,
    merge_at,
    merge_buckets,
)

__all__ = ["NUM_BUCKETS", "SeriesCache", "SeriesStats"]

# Two points per bucket and the newest one: never more than 2,000.
NUM_BUCKETS = 998
_FREE = -1


@dataclass(frozen=True, slots=True)
class SeriesStats:
    """Counts over the whole life of a series, and its newest point."""

    total_points: int
    nan_count: int
    last_step: int
    last_time: int
    last_value: float


class SeriesCache:
    """Rows of buckets, handed to series by number. Memory is touched only as far as rows are filled."""

    def __init__(self, max_series: int = 10_000) -> None:
        self.max_series = max_series
        self._buckets = _lazy_rows(max_series)
        self._total = np.zeros(max_series, np.int64)
        self._in_row = np.zeros(max_series, np.int64)
        self._shift = np.zeros(max_series, np.int64)
        self._bad = np.zeros(max_series, np.int64)
        self._last_step = np.zeros(max_series, np.int64)
        self._last_time = np.zeros(max_series, np.int64)
        self._last_value = np.zeros(max_series, np.float64)
        self._slots: npt.NDArray[np.int64] = np.full(1024, _FREE, np.int64)
        self._free = list(range(max_series - 1, -1, -1))

    @property
    def num_free(self) -> int:
        return len(self._free)

    def has(self, number: int) -> bool:
        return number < len(self._slots) and self._slots[number] != _FREE

    def apply(self, numbers: Ints, steps: Ints, times: Ints, values: Floats) -> Ints:
        """Adds points in order of arrival. Returns the positions that found no row because the cache is full."""
        if len(numbers) == 0:
            return np.zeros(0, np.int64)
        order = np.argsort(numbers, kind="stable")
        sorted_numbers = numbers[order]
        starts = _changes(sorted_numbers)
        sizes = np.diff(starts, append=len(order))
        slots = np.array([self._slot(int(number)) for number in sorted_numbers[starts]], np.int64)
        if (slots == _FREE).any():
            homeless = np.repeat(slots == _FREE, sizes)
            rest = np.sort(order[~homeless])
            self.apply(numbers[rest], steps[rest], times[rest], values[rest])
            return np.sort(order[homeless])
        self._make_room(slots, sizes)
        steps, times, values = steps[order], times[order], values[order]
        within = np.arange(len(order)) - np.repeat(starts, sizes) + np.repeat(self._in_row[slots], sizes)
        columns = within >> np.repeat(self._shift[slots], sizes)
        rows = np.repeat(slots, sizes)
        cuts = _changes(rows * NUM_BUCKETS + columns)
        self._merge(rows[cuts], columns[cuts], bucketize(steps, times, values, cuts))
        ends = starts + sizes - 1
        self._total[slots] += sizes
        self._in_row[slots] += sizes
        self._bad[slots] += np.add.reduceat((~np.isfinite(values)).astype(np.int64), starts)
        self._last_step[slots], self._last_time[slots] = steps[ends], times[ends]
        self._last_value[slots] = values[ends]
        return np.zeros(0, np.int64)

    def load(self, number: int, buckets: Buckets, stats: SeriesStats) -> bool:
        """Replaces a series by what the store holds: buckets in order, each of any width. False when full."""
        slot = self._slot(number)
        if slot == _FREE:
            return False
        while len(buckets) > NUM_BUCKETS:
            buckets = merge_buckets(buckets, 2)
        self._clear(slot)
        self._buckets[slot, : len(buckets)] = buckets
        # Widths differ after a load; the next points go on as if each bucket held the widest one's share.
        widest = int(buckets["n"].max()) if len(buckets) else 1
        self._shift[slot] = max(0, (widest - 1).bit_length())
        self._in_row[slot] = len(buckets) << int(self._shift[slot])
        self._total[slot], self._bad[slot] = stats.total_points, stats.nan_count
        self._last_step[slot], self._last_time[slot] = stats.last_step, stats.last_time
        self._last_value[slot] = stats.last_value
        return True

    def curve(self, number: int, points: int = 2 * NUM_BUCKETS + 1) -> Curve:
        """The series in at most `points` points; its newest point is always the last to be dropped."""
        return self.curves([number], points)[0]

    def curves(self, numbers: list[int], points: int = 2 * NUM_BUCKETS + 1) -> list[Curve]:
        """The same for many series at once, for the price of a few."""
        if not numbers:
            return []
        slots = self._slots[np.array(numbers, np.int64)]
        used = (self._in_row[slots] + (1 << self._shift[slots]) - 1) >> self._shift[slots]
        buckets = np.concatenate([self._buckets[slot, :size] for slot, size in zip(slots, used, strict=True)])
        room = max(1, (points - 1) // 2)
        widths = np.maximum(1, -(-used // room))
        owners = np.repeat(np.arange(len(slots)), used)
        place = np.arange(len(buckets)) - np.repeat(np.cumsum(used) - used, used)
        if (widths > 1).any():
            starts = np.flatnonzero(place % np.repeat(widths, used) == 0)
            buckets, owners = merge_at(buckets, starts), owners[starts]
        curve, owned = curves_of(buckets, owners)
        ends = np.searchsorted(owned, np.arange(len(slots) + 1))
        return [self._ended(int(slot), curve.take(slice(*ends[at : at + 2]))) for at, slot in enumerate(slots)]

    def stats(self, number: int) -> SeriesStats:
        slot = int(self._slots[number])
        return SeriesStats(
            total_points=int(self._total[slot]),
            nan_count=int(self._bad[slot]),
            last_step=int(self._last_step[slot]),
            last_time=int(self._last_time[slot]),
            last_value=float(self._last_value[slot]),
        )

    def is_raw(self, number: int) -> bool:
        """Whether every point of the series is still here as it came."""
        slot = self._slots[number]
        return bool(self._shift[slot] == 0 and self._total[slot] == self._in_row[slot])

    def evict(self, numbers: list[int]) -> None:
        """Gives the rows of these series away; the store still has them."""
        for number in numbers:
            if self.has(number):
                slot = int(self._slots[number])
                self._clear(slot)
                self._slots[number] = _FREE
                self._free.append(slot)

    def _slot(self, number: int) -> int:
        while number >= len(self._slots):
            self._slots = np.concatenate([self._slots, np.full_like(self._slots, _FREE)])
        slot = int(self._slots[number])
        if slot == _FREE and self._free:
            slot = self._free.pop()
            self._slots[number] = slot
        return slot

    def _clear(self, slot: int) -> None:
        self._buckets[slot] = np.zeros((), BUCKET)
        for column in (self._total, self._in_row, self._shift, self._bad):
            column[slot] = 0

    def _make_room(self, slots: Ints, sizes: Ints) -> None:
        while True:
            full = slots[self._in_row[slots] + sizes > (NUM_BUCKETS << self._shift[slots])]
            if len(full) == 0:
                return
            for slot in full:
                self._halve(int(slot))

    def _halve(self, slot: int) -> None:
        merged = merge_buckets(self._buckets[slot, : self._used(slot)], 2)
        self._buckets[slot, : len(merged)] = merged
        self._buckets[slot, len(merged) :] = np.zeros((), BUCKET)
        self._shift[slot] += 1

    def _used(self, slot: int) -> int:
        width = 1 << int(self._shift[slot])
        return (int(self._in_row[slot]) + width - 1) // width

    def _merge(self, rows: Ints, columns: Ints, fresh: Buckets) -> None:
        old = self._buckets[rows, columns]
        kept = old["n"] > 0
        lower = kept & (old["vmin"] <= fresh["vmin"])
        higher = kept & (old["vmax"] >= fresh["vmax"])
        for name in ("vmin", "smin", "tmin"):
            fresh[name] = np.where(lower, old[name], fresh[name])
        for name in ("vmax", "smax", "tmax"):
            fresh[name] = np.where(higher, old[name], fresh[name])
        fresh["n"] += np.where(kept, old["n"], 0).astype(np.uint32)
        fresh["bad"] += np.where(kept, old["bad"], 0).astype(np.uint32)
        self._buckets[rows, columns] = fresh

    def _ended(self, slot: int, curve: Curve) -> Curve:
        """A bucket shows its extremes; the newest point is what people look at, so it is added when it is neither."""
        step, time, value = self._last_step[slot], self._last_time[slot], self._last_value[slot]
        if len(curve) == 0 or not np.isfinite(value) or step < curve.steps[-1]:
            return curve
        tail = slice(-4, None)  # two points of each of the last buckets: the newest one cannot lie before them
        same = (curve.steps[tail] == step) & (curve.times[tail] == time) & (curve.values[tail] == value)
        if same.any():
            return curve
        one = np.array([value])
        return Curve(
            steps=np.append(curve.steps, step),
            times=np.append(curve.times, time),
            values=np.append(curve.values, one),
            low=np.append(curve.low, one),
            high=np.append(curve.high, one),
            bad=np.append(curve.bad, 0),
        )


def _lazy_rows(max_series: int) -> npt.NDArray[np.void]:
    """Zeroed memory of which only touched pages cost anything. numpy asks for huge pages, which would touch all."""
    memory = mmap.mmap(-1, max_series * NUM_BUCKETS * BUCKET.itemsize)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, BUCKET).reshape(max_series, NUM_BUCKETS)


def _changes(sorted_values: Ints) -> Ints:
    """Positions where a run of equal values begins."""
    begins = np.ones(len(sorted_values), bool)
    begins[1:] = sorted_values[1:] != sorted_values[:-1]
    return np.flatnonzero(begins)
