"""Every series this process has met: its number within the stream's epoch, and how many of its rows the store holds.

Numbers are never reused, so a browser may keep them for as long as its stream lasts.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from strata.observatory.batch.heads import SeriesHead
from strata.types.metrics import SeriesKey

__all__ = ["SeriesTable", "Track", "track_of"]

# Run, metric, rank and device: a rank that moved to another host does the same steps there.
Track = tuple[str, str, int, int]

_MAX_REMEMBERED = 256
# Rows in the store, those that are superseded (there or on their way), the place of its run among all, its rank, the
# place of its run and metric among all, its own place in that group, its device, the places of its words, and whether
# it samples a host.
_ROW = np.dtype(
    [
        *((name, "i8") for name in ("stored", "hidden", "run", "rank", "group", "place", "device")),
        *((name, "i4") for name in ("metric", "host", "unit")),
        ("of_host", "?"),
    ],
    align=True,
)
# Nobody reads a chart of more lines: of a wider group a page is sent the first few, and asks for the picture of all.
WIDE = 128
SHOWN_OF_WIDE = 16


class SeriesTable:
    """Interning: a key becomes a small integer that indexes arrays."""

    def __init__(self) -> None:
        self._ids: dict[SeriesKey, int] = {}
        self._keys: list[SeriesKey] = []
        self._words: dict[str, int] = {"": 0}
        self._texts: list[str] = [""]  # the same by their places
        self._by_run: dict[str, list[int]] = defaultdict(list)
        self._by_track: dict[Track, list[int]] = defaultdict(list)
        self._by_metric: dict[str, list[int]] = defaultdict(list)
        self._run_ids: list[str] = []
        self._groups: dict[tuple[str, str], int] = {}
        self._num_ranks: dict[str, tuple[int, dict[str, int]]] = {}  # with how many series they were counted
        self._wide: dict[str, dict[str, int]] = {}
        self._widths: npt.NDArray[np.int64] = np.zeros(256, np.int64)  # by group
        self._rows: npt.NDArray[np.void] = np.zeros(1024, _ROW)
        # By identity: the same tuple comes with every batch of a sender, and holding it keeps its id its own.
        self._remembered: OrderedDict[int, tuple[tuple[SeriesHead, ...], npt.NDArray[np.int64]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    def intern(self, key: SeriesKey, unit: str = "") -> int:
        """The series' number, new or known. A unit that comes late is kept."""
        known = self._ids.get(key)
        if known is not None:
            if unit and not self._rows["unit"][known]:
                self._rows["unit"][known] = self._word(unit)
            return known
        number = len(self._keys)
        self._ids[key] = number
        self._keys.append(key)
        if number >= len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        siblings = self._by_run[key.run_id]
        if not siblings:
            self._run_ids.append(key.run_id)
        run = self._rows["run"][siblings[0]] if siblings else len(self._run_ids) - 1
        group, place = self._enter(key)
        words = map(self._word, (key.metric, key.host, unit))
        self._rows[number] = (0, 0, run, key.rank, group, place, key.device, *words, key.metric.startswith("sys."))
        siblings.append(number)
        self._by_track[track_of(key)].append(number)
        self._by_metric[key.metric].append(number)
        return number

    def _word(self, text: str) -> int:
        known = self._words.setdefault(text, len(self._texts))
        if known == len(self._texts):
            self._texts.append(text)
        return known

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

    def _enter(self, key: SeriesKey) -> tuple[int, int]:
        """The group of a new series, and its place there. The first rank has the first place, whenever it comes."""
        group = self._groups.setdefault((key.run_id, key.metric), len(self._groups))
        if group >= len(self._widths):
            self._widths = np.concatenate([self._widths, np.zeros_like(self._widths)])
        place = int(self._widths[group])
        self._widths[group] += 1
        if place >= WIDE:
            self._wide.setdefault(key.run_id, {})[key.metric] = place + 1
        return group, 0 if key.rank == 0 and not key.metric.startswith("sys.") else place

    def group(self, run_id: str, metric: str) -> int:
        """The number under which the series of this run and metric are grouped; -1: there are none."""
        return self._groups.get((run_id, metric), -1)

    def groups(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self._rows["group"][numbers]

    def ranks(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self._rows["rank"][numbers]

    def devices(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self._rows["device"][numbers]

    def words(
        self, part: Literal["run", "metric", "host", "unit"], numbers: npt.NDArray[np.int64]
    ) -> tuple[list[str], npt.NDArray[np.int64]]:
        """The distinct words of a part of these series, and for each series the place of its own among them."""
        texts = self._run_ids if part == "run" else self._texts
        codes = self._rows[part][numbers]
        used = np.zeros(len(texts), bool)
        used[codes] = True
        places: npt.NDArray[np.int64] = np.cumsum(used) - 1
        return [texts[code] for code in np.flatnonzero(used).tolist()], places[codes]

    def num_ranks(self, run_id: str) -> dict[str, int]:
        """How many ranks have logged each metric of a run."""
        size, found = self._num_ranks.get(run_id, (0, {}))
        numbers = self.of_run(run_id)
        if size != len(numbers):
            tracks = {(key.metric, key.rank) for key in map(self._keys.__getitem__, numbers)}
            found = dict(Counter(metric for metric, _ in tracks))
            self._num_ranks[run_id] = (len(numbers), found)
        return found

    def wide_of(self, run_id: str) -> dict[str, int]:
        """The metrics of a run that have more series than a page is sent, and how many."""
        return self._wide.get(run_id, {})

    def num_sent(self, run_id: str) -> int:
        """How many series of a run a page is sent: of wide metrics the first few."""
        return len(self.of_run(run_id)) - sum(count - SHOWN_OF_WIDE for count in self.wide_of(run_id).values())

    def is_thinned(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of them a page is not sent: those of a wide group, but for its first few."""
        wide: npt.NDArray[np.bool_] = self._widths[self._rows["group"][numbers]] > WIDE
        return wide & (self._rows["place"][numbers] >= SHOWN_OF_WIDE)

    def run_numbers(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Of which run each series is, as places of `run_id`."""
        return self._rows["run"][numbers]

    def of_host(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which of them are samples of a host, taken by Strata: their steps count samples, not training."""
        return self._rows["of_host"][numbers]

    def run_id(self, run_number: int) -> str:
        return self._run_ids[run_number]

    def find(self, key: SeriesKey) -> int | None:
        return self._ids.get(key)

    def key(self, number: int) -> SeriesKey:
        return self._keys[number]

    def unit(self, number: int) -> str:
        return self._texts[int(self._rows["unit"][number])]

    def of_run(self, run_id: str) -> list[int]:
        return self._by_run.get(run_id, [])

    def of_track(self, track: Track) -> list[int]:
        """The series of this metric and rank, one per host."""
        return self._by_track.get(track, [])

    def of_metric(self, metric: str) -> list[int]:
        """The series of this name, of all runs."""
        return self._by_metric.get(metric, [])

    def metrics(self) -> list[str]:
        """Every name that any run has logged."""
        return list(self._by_metric)

    def stored(self, number: int) -> int:
        """Rows of the series in the store, as far as this process wrote or saw them."""
        return int(self._rows["stored"][number])

    @property
    def total_stored(self) -> int:
        return int(self._rows["stored"].sum())

    def set_stored(self, number: int, count: int) -> None:
        self._rows["stored"][number] = count

    def hidden(self, number: int) -> int:
        """Points of the series that are superseded."""
        return int(self._rows["hidden"][number])

    def num_hidden(self, run_id: str) -> int:
        return int(self._rows["hidden"][self.of_run(run_id)].sum())

    def set_hidden(self, number: int, count: int) -> None:
        self._rows["hidden"][number] = count

    def forget_hidden(self, numbers: Sequence[int]) -> None:
        """Whoever counts these anew begins with none: what the store does not have yet is added to it."""
        self._rows["hidden"][numbers] = 0

    def add_hidden(self, numbers: npt.NDArray[np.int64]) -> None:
        """One more superseded point for each of these, which may repeat."""
        np.add.at(self._rows["hidden"], numbers, 1)

    def forget_stored(self, run_id: str) -> None:
        """The store holds nothing of the run any more."""
        for name in ("stored", "hidden"):
            self._rows[name][self.of_run(run_id)] = 0

    def add_stored(self, numbers: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
        np.add.at(self._rows["stored"], numbers, counts)


def track_of(key: SeriesKey) -> Track:
    return key.run_id, key.metric, key.rank, key.device
