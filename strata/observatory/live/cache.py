"""The live picture of the newest series in bounded memory: at most 998 buckets each, whatever its length.

A series that has a row here is whole; of the others the tally alone is known, and the store has their points. Buckets
cut a series by order of arrival, not by step: constant steps, steps that go back after a restart and absurd ones all
keep their shape, and a bucket never has to be searched. When a row is full, neighbours merge and the width doubles.
Updates are vectorised over series; never called from another thread.
"""

import mmap

import numpy as np
import numpy.typing as npt

from strata.observatory.live.decimate import (
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
    order_of,
)
from strata.observatory.live.tally import SeriesStats, Tally

__all__ = ["NUM_BUCKETS", "SeriesCache"]

# Two points per bucket and the newest one: never more than 2,000.
NUM_BUCKETS = 998
_FREE = -1
_ROWS_AT_ONCE = 256
_NEARLY_FULL = 850


class SeriesCache:
    """Rows of buckets, handed to series by number. Memory is touched only as far as rows are filled."""

    def __init__(self, max_series: int = 10_000) -> None:
        self.max_series = max_series
        self.tally = Tally()
        self._buckets = _lazy_rows(max_series)
        self._in_row = np.zeros(max_series, np.int64)
        self._shift = np.zeros(max_series, np.int64)
        self._owner = np.full(max_series, _FREE, np.int64)
        self._used_at = np.zeros(max_series, np.int64)
        self._uses = 0
        self._slots: npt.NDArray[np.int64] = np.full(1024, _FREE, np.int64)
        self._free = list(range(max_series - 1, -1, -1))

    @property
    def num_free(self) -> int:
        return len(self._free)

    def has(self, number: int) -> bool:
        return number < len(self._slots) and self._slots[number] != _FREE

    def count_new(self, numbers: Ints) -> int:
        """How many of these series were never heard of: each wants a row."""
        return int((self.tally.totals(np.unique(numbers)) == 0).sum())

    def apply(self, numbers: Ints, steps: Ints, times: Ints, values: Floats) -> int:
        """Adds points in order of arrival. A new series gets a row while there are any; one that is known but has none
        is only counted, for a row with its newest points alone would look whole. Returns how many points had no row."""
        if len(numbers) == 0:
            return 0
        if (numbers[1:] < numbers[:-1]).any():
            order = order_of(numbers)
            numbers, steps, times, values = numbers[order], steps[order], times[order], values[order]
        starts = _changes(numbers)
        heads = numbers[starts]
        slots = self._slots_of(heads)
        self.tally.add(heads, starts, steps, times, values)
        sizes = np.diff(starts, append=len(numbers))
        if (slots == _FREE).any():
            housed = slots != _FREE
            rows = np.repeat(housed, sizes)
            slots, sizes = slots[housed], sizes[housed]
            steps, times, values = steps[rows], times[rows], values[rows]
        if len(slots):
            self._put(slots, sizes, steps, times, values)
        return len(numbers) - len(steps)

    def _put(self, slots: Ints, sizes: Ints, steps: Ints, times: Ints, values: Floats) -> None:
        """Points of series that have rows, row by row."""
        self._uses += 1
        self._used_at[slots] = self._uses
        self._make_room(slots, sizes)
        starts = np.cumsum(sizes) - sizes
        within = np.arange(len(steps)) + np.repeat(self._in_row[slots] - starts, sizes)
        shifts = np.repeat(self._shift[slots], sizes)
        places = np.repeat(slots * NUM_BUCKETS, sizes) + (within >> shifts)
        cuts = _changes(places)
        begun = np.flatnonzero(within[cuts] & ((1 << shifts[cuts]) - 1))
        self._merge(places[cuts], bucketize(steps, times, values, cuts), begun)
        self._in_row[slots] += sizes

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
        self._uses += 1
        self._used_at[slot] = self._uses
        self.tally.set(number, stats)
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
        return [self._ended(number, curve.take(slice(*ends[at : at + 2]))) for at, number in enumerate(numbers)]

    def stats(self, number: int) -> SeriesStats:
        return self.tally.of(number)

    def top_step(self, number: int) -> int:
        """The highest step that is known of it: a bucket knows those of its extremes, the tally that of the newest."""
        newest = self.tally.of(number).last_step
        if not self.has(number):
            return newest
        row = self._buckets[self._slots[number]]  # what is not used is zero
        return max(newest, int(row["smin"].max()), int(row["smax"].max()))

    def is_raw(self, number: int) -> bool:
        """Whether every point of the series is still here as it came."""
        slot = self._slots[number]
        return bool(self._shift[slot] == 0 and self.tally.of(number).total_points == self._in_row[slot])

    def held(self) -> tuple[Ints, Ints]:
        """The series that have a row, and a number for each that is the higher the later it was fed or loaded."""
        rows = np.flatnonzero(self._owner != _FREE)
        return self._owner[rows], self._used_at[rows]

    def evict(self, numbers: list[int]) -> None:
        """Gives the rows of these series away; the store still has them."""
        for number in numbers:
            if self.has(number):
                slot = int(self._slots[number])
                self._clear(slot)
                self._slots[number] = _FREE
                self._owner[slot] = _FREE
                self._free.append(slot)

    def _slots_of(self, numbers: Ints) -> Ints:
        """Sorted numbers; those that are new get a row each while there are any."""
        self._grow(int(numbers[-1]))
        slots = self._slots[numbers]
        for place in np.flatnonzero((slots == _FREE) & (self.tally.totals(numbers) == 0)).tolist():
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
            self._owner[slot] = number
        return slot

    def _clear(self, slot: int) -> None:
        self._buckets[slot] = np.zeros((), BUCKET)
        self._in_row[slot] = self._shift[slot] = 0

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

    def _ended(self, number: int, curve: Curve) -> Curve:
        """A bucket shows its extremes; the newest point is what people look at, so it is added when it is neither."""
        newest = self.tally.of(number)
        step, time, value = newest.last_step, newest.last_time, newest.last_value
        if len(curve) == 0 or not np.isfinite(value) or step < curve.steps[-1]:
            return curve
        tail = slice(-4, None)  # two points of each of the last buckets: the newest one cannot lie before them
        same = (curve.steps[tail] == step) & (curve.times[tail] == time) & (curve.values[tail] == value)
        if same.any():
            return curve
        return curve.with_last(step, time, value)


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
