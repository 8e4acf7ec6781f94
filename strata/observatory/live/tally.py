"""How many points every series has had, and its newest one: by number, whether its points are in memory or not."""

from dataclasses import dataclass

import numpy as np

from strata.observatory.live.decimate import Floats, Ints

__all__ = ["NewestPoints", "SeriesStats", "Tally"]


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


class Tally:
    """Forty bytes per series, so that everything the store holds can be named without being held."""

    def __init__(self) -> None:
        self._totals: Ints = np.zeros(1024, np.int64)
        self._nans: Ints = np.zeros(1024, np.int64)
        self._steps: Ints = np.zeros(1024, np.int64)
        self._times: Ints = np.zeros(1024, np.int64)
        self._values: Floats = np.zeros(1024, np.float64)

    def add(self, numbers: Ints, starts: Ints, steps: Ints, times: Ints, values: Floats) -> None:
        """Points sorted by series, each in order of arrival; the points of `numbers[i]` begin at `starts[i]`."""
        self._grow(int(numbers[-1]))
        ends = np.append(starts[1:], len(steps)) - 1
        self._totals[numbers] += ends - starts + 1
        self._nans[numbers] += np.add.reduceat((~np.isfinite(values)).astype(np.int64), starts)
        self._steps[numbers], self._times[numbers], self._values[numbers] = steps[ends], times[ends], values[ends]

    def set(self, number: int, stats: SeriesStats) -> None:
        self._grow(number)
        self._totals[number], self._nans[number] = stats.total_points, stats.nan_count
        self._steps[number], self._times[number] = stats.last_step, stats.last_time
        self._values[number] = stats.last_value

    def forget(self, numbers: list[int]) -> None:
        """As if nothing had ever come of them."""
        known = [number for number in numbers if number < len(self._totals)]
        for column in (self._totals, self._nans, self._steps, self._times, self._values):
            column[known] = 0

    def totals(self, numbers: Ints) -> Ints:
        """How many points each has had; 0 for one that was never heard of."""
        if len(numbers):
            self._grow(int(numbers.max()))
        return self._totals[numbers]

    def of(self, number: int) -> SeriesStats:
        return SeriesStats(
            total_points=int(self._totals[number]),
            nan_count=int(self._nans[number]),
            last_step=int(self._steps[number]),
            last_time=int(self._times[number]),
            last_value=float(self._values[number]),
        )

    def many(self, numbers: list[int]) -> NewestPoints:
        chosen = np.array(numbers, np.int64)
        return NewestPoints(
            totals=self._totals[chosen],
            nans=self._nans[chosen],
            steps=self._steps[chosen],
            times=self._times[chosen],
            values=self._values[chosen],
        )

    def _grow(self, number: int) -> None:
        while number >= len(self._totals):
            self._totals, self._nans, self._steps, self._times = (
                np.concatenate([column, np.zeros_like(column)])
                for column in (self._totals, self._nans, self._steps, self._times)
            )
            self._values = np.concatenate([self._values, np.zeros_like(self._values)])
