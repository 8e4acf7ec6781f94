"""Every series this process has met: its number within the stream's epoch, and how many of its rows the store holds.

Numbers are never reused, so a browser may keep them for as long as its stream lasts.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from strata.types.metrics import SeriesKey

__all__ = ["SeriesTable"]


class SeriesTable:
    """Interning: a key becomes a small integer that indexes arrays."""

    def __init__(self) -> None:
        self._ids: dict[SeriesKey, int] = {}
        self._keys: list[SeriesKey] = []
        self._units: list[str] = []
        self._by_run: dict[str, list[int]] = defaultdict(list)
        self._stored: npt.NDArray[np.int64] = np.zeros(1024, np.int64)

    def __len__(self) -> int:
        return len(self._keys)

    def intern(self, key: SeriesKey, unit: str = "") -> int:
        """The series' number, new or known. A unit that comes late is kept."""
        known = self._ids.get(key)
        if known is not None:
            if unit and not self._units[known]:
                self._units[known] = unit
            return known
        number = len(self._keys)
        self._ids[key] = number
        self._keys.append(key)
        self._units.append(unit)
        self._by_run[key.run_id].append(number)
        if number >= len(self._stored):
            self._stored = np.concatenate([self._stored, np.zeros_like(self._stored)])
        return number

    def find(self, key: SeriesKey) -> int | None:
        return self._ids.get(key)

    def key(self, number: int) -> SeriesKey:
        return self._keys[number]

    def unit(self, number: int) -> str:
        return self._units[number]

    def of_run(self, run_id: str) -> list[int]:
        return self._by_run.get(run_id, [])

    def runs(self) -> Iterable[str]:
        return self._by_run.keys()

    def stored(self, number: int) -> int:
        """Rows of the series in the store, as far as this process wrote or saw them."""
        return int(self._stored[number])

    @property
    def total_stored(self) -> int:
        return int(self._stored.sum())

    def set_stored(self, number: int, count: int) -> None:
        self._stored[number] = count

    def forget_stored(self, run_id: str) -> None:
        """The store holds nothing of the run any more."""
        for number in self.of_run(run_id):
            self._stored[number] = 0

    def add_stored(self, numbers: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
        np.add.at(self._stored, numbers, counts)
