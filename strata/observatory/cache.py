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
    merge_pairs,
)

__all__ = ["NUM_BUCKETS", "NewestPoints", "SeriesCache", "SeriesStats"]

# Two points per bucket and the newest one: never more than 2,000.
NUM_BUCKETS = 998
_FREE = -1
_ROWS_AT_ONCE = 256
_NEARLY_FULL = 850


@dataclass(frozen=True, slots=True)
class SeriesStats:
    """Counts over the whole life of a series, and its newest point."""

    total_points: int
    nan_count: int
    last_step: int
    last_time: int
    last_value: float


@dataclass(frozen=True, slots=True)
class NewestPoints:
    """The same of many series, as columns."""

    totals: Ints
    nans: Ints
    steps: Ints
    times: Ints
    values: Floats


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
        slots = self._slots_of(sorted_numbers[starts])
        if (slots == _FREE).any():
            homeless = np.repeat(slots == _FREE, sizes)
            rest = np.sort(order[~homeless])
            self.apply(numbers[rest], steps[rest], times[rest], values[rest])
            return np.sort(order[homeless])
        self._make_room(slots, sizes)
        steps, times, values = steps[order], times[order], values[order]
        within = np.arange(len(order)) + np.repeat(self._in_row[slots] - starts, sizes)
        shifts = np.repeat(self._shift[slots], sizes)
        places = np.repeat(slots * NUM_BUCKETS, sizes) + (within >> shifts)
        cuts = _changes(places)
        begun = np.flatnonzero(within[cuts] & ((1 << shifts[cuts]) - 1))
        self._merge(places[cuts], bucketize(steps, times, values, cuts), begun)
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

    def newest(self, numbers: list[int]) -> NewestPoints:
        """`stats` of many series at once; each must be here."""
        slots = self._slots[np.array(numbers, np.int64)]
        return NewestPoints(
            totals=self._total[slots],
            nans=self._bad[slots],
            steps=self._last_step[slots],
            times=self._last_time[slots],
            values=self._last_value[slots],
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

    def _slots_of(self, numbers: Ints) -> Ints:
        """Sorted numbers; new ones get a row each while there are any."""
        self._grow(int(numbers[-1]))
        slots = self._slots[numbers]
        for place in np.flatnonzero(slots == _FREE).tolist():
            slots[place] = self._slot(int(numbers[place]))
        return slots

    def _grow(self, number: int) -> None:
        while number >= len(self._slots):
            self._slots = np.concatenate([self._slots, np.full_like(self._slots, _FREE)])

    def _slot(self, number: int) -> int:
        self._grow(number)
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
        nearly = slots[self._in_row[slots] + sizes > (_NEARLY_FULL << self._shift[slots])]
        if len(nearly) > _ROWS_AT_ONCE:
            # Thousands of series that are fed alike would all be full in the same tick, which would then take a
            # third of a second (measured): some go before their time.
            self._halve(nearly[:_ROWS_AT_ONCE])
        while True:
            full = slots[self._in_row[slots] + sizes > (NUM_BUCKETS << self._shift[slots])]
            if len(full) == 0:
                return
            for start in range(0, len(full), _ROWS_AT_ONCE):
                self._halve(full[start : start + _ROWS_AT_ONCE])

    def _halve(self, slots: Ints) -> None:
        """Neighbours merge, in all of these rows at once."""
        pairs = self._buckets[slots].reshape(len(slots), NUM_BUCKETS // 2, 2)
        self._buckets[slots, : NUM_BUCKETS // 2] = merge_pairs(pairs[:, :, 0], pairs[:, :, 1])
        self._buckets[slots, NUM_BUCKETS // 2 :] = np.zeros((), BUCKET)
        self._shift[slots] += 1

    def _merge(self, places: Ints, fresh: Buckets, begun: Ints) -> None:
        """Puts buckets where they belong; those at `begun` go on with one that has points already."""
        flat = self._buckets.reshape(-1)
        if len(begun):
            fresh[begun] = merge_pairs(flat[places[begun]], fresh[begun])
        flat[places] = fresh

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
