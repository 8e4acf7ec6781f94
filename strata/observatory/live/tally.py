"""How many points every series has had, its newest one and its extremes: by number, whether its points are in
memory or not."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt

from strata.observatory.live.decimate import Floats, Ints

__all__ = ["SeriesStats", "Tally"]

_ROW = np.dtype(
    [("total", "i8"), ("bad", "i8"), ("step", "i8"), ("time", "i8"), ("value", "f8"), ("low", "f8"), ("high", "f8")]
)
_NOTHING = np.array((0, 0, 0, 0, 0.0, np.inf, -np.inf), _ROW)


@dataclass(frozen=True, slots=True)
class SeriesStats:
    """Counts over the whole life of a series, its newest point and its extremes: infinities when none was finite."""

    total_points: int
    nan_count: int
    last_step: int
    last_time: int
    last_value: float
    lowest: float
    highest: float


class Tally:
    """56 bytes per series, so that everything the store holds can be named without being held."""

    def __init__(self) -> None:
        self._rows: npt.NDArray[np.void] = np.full(1024, _NOTHING)

    def add(self, numbers: Ints, starts: Ints, steps: Ints, times: Ints, values: Floats) -> None:
        """Points sorted by series, each in order of arrival; the points of `numbers[i]` begin at `starts[i]`."""
        self._grow(int(numbers[-1]))
        ends = np.append(starts[1:], len(steps)) - 1
        self._rows["total"][numbers] += ends - starts + 1
        finite = np.isfinite(values)
        self._rows["bad"][numbers] += np.add.reduceat((~finite).astype(np.int64), starts)
        for name, none, extreme in (("low", np.inf, np.minimum), ("high", -np.inf, np.maximum)):
            fresh = extreme.reduceat(np.where(finite, values, none), starts)
            self._rows[name][numbers] = extreme(self._rows[name][numbers], fresh)
        for name, column in (("step", steps), ("time", times), ("value", values)):
            self._rows[name][numbers] = column[ends]

    def set(self, number: int, stats: SeriesStats) -> None:
        self._grow(number)
        self._rows[number] = astuple(stats)

    def forget(self, numbers: list[int]) -> None:
        """As if nothing had ever come of them."""
        self._rows[[number for number in numbers if number < len(self._rows)]] = _NOTHING

    def totals(self, numbers: Ints) -> Ints:
        """How many points each has had; 0 for one that was never heard of."""
        if len(numbers):
            self._grow(int(numbers.max()))
        return self._rows["total"][numbers]

    def of(self, number: int) -> SeriesStats:
        return SeriesStats(*self._rows[number].item())

    def many(self, numbers: Sequence[int] | Ints) -> npt.NDArray[np.void]:
        """Total, bad ones, the newest point's step, time and value, low and high, as columns by these names."""
        return self._rows[np.asarray(numbers, np.int64)]

    def _grow(self, number: int) -> None:
        while number >= len(self._rows):
            self._rows = np.concatenate([self._rows, np.full_like(self._rows, _NOTHING)])
