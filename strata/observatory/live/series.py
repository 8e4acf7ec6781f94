"""Every series this process has met: its number within the stream's epoch, and how many of its rows the store holds.

Numbers are never reused, so a browser may keep them for as long as its stream lasts.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from strata.observatory.batch.heads import SeriesHead
from strata.types.metrics import SeriesKey

__all__ = ["SeriesTable"]

_MAX_REMEMBERED = 256


class SeriesTable:
    """Interning: a key becomes a small integer that indexes arrays."""

    def __init__(self) -> None:
        self._ids: dict[SeriesKey, int] = {}
        self._keys: list[SeriesKey] = []
        self._units: list[str] = []
        self._by_run: dict[str, list[int]] = defaultdict(list)
        self._stored: npt.NDArray[np.int64] = np.zeros(1024, np.int64)
        self._run_ids: list[str] = []
        self._run_of: npt.NDArray[np.int64] = np.zeros(1024, np.int64)
        self._of_host: npt.NDArray[np.bool_] = np.zeros(1024, np.bool_)
        # By identity: the same tuple comes with every batch of a sender, and holding it keeps its id its own.
        self._remembered: OrderedDict[int, tuple[tuple[SeriesHead, ...], npt.NDArray[np.int64]]] = OrderedDict()

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
        if number >= len(self._stored):
            self._stored = np.concatenate([self._stored, np.zeros_like(self._stored)])
            self._run_of = np.concatenate([self._run_of, np.zeros_like(self._run_of)])
            self._of_host = np.concatenate([self._of_host, np.zeros_like(self._of_host)])
        self._of_host[number] = key.metric.startswith("sys.")
        siblings = self._by_run[key.run_id]
        if siblings:
            self._run_of[number] = self._run_of[siblings[0]]
        else:
            self._run_of[number] = len(self._run_ids)
            self._run_ids.append(key.run_id)
        siblings.append(number)
        return number

    def intern_all(self, heads: tuple[SeriesHead, ...]) -> npt.NDArray[np.int64]:
        """The numbers of a batch's series, in order. Read only; a tuple that came before costs one look."""
        known = self._remembered.get(id(heads))
        if known is not None:
            return known[1]
        numbers = np.array([self.intern(head.key, head.unit) for head in heads], np.int64)
        self._remembered[id(heads)] = (heads, numbers)
        if len(self._remembered) > _MAX_REMEMBERED:
            self._remembered.popitem(last=False)
        return numbers

    def run_numbers(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Of which run each series is, as places of `run_id`."""
        return self._run_of[numbers]

    def of_host(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of them are samples of a host, taken by Strata: their steps count samples, not training."""
        return self._of_host[numbers]

    def run_id(self, run_number: int) -> str:
        return self._run_ids[run_number]

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
