"""Who took which shard of a queue in this epoch: a name per place, kept after the lease is over.

Four bytes per shard. A shard that went back and was taken again has more than one taker; those few are a dict.
"""

import base64
import zlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Takers"]

_NOBODY = -1


class Takers:
    """`counts` are the shards that each worker took, by worker."""

    def __init__(self, num_places: int) -> None:
        self._numbers: dict[str, int] = {}
        self.names: list[str] = []  # the workers that `last` numbers
        self.last: NDArray[np.int32] = np.full(num_places, _NOBODY, dtype=np.int32)
        """By place: who took it last, as an index into `names`; -1 is nobody."""
        self.earlier: dict[int, tuple[str, ...]] = {}
        """By place: who had taken it before; only places where there was somebody."""
        self.counts: Counter[str] = Counter()

    def take(self, place: int, worker: str) -> None:
        number, before = self._numbers.setdefault(worker, len(self.names)), int(self.last[place])
        if number == len(self.names):
            self.names.append(worker)
        if before == number:
            return
        known = self.earlier.get(place, ())
        if before != _NOBODY:
            known = self.earlier[place] = (*known, self.names[before])
        if worker not in known:
            self.counts[worker] += 1
        self.last[place] = number

    def forget(self, kept: NDArray[np.bool_]) -> None:
        """After going back to a checkpoint: keeps only places where `kept` holds."""
        self.last[~kept] = _NOBODY
        self.earlier = {place: names for place, names in self.earlier.items() if kept[place]}
        self._count()

    def dump(self) -> dict[str, Any]:
        return {
            "names": self.names,
            "last": base64.b64encode(zlib.compress(self.last.astype("<i4").tobytes(), 1)).decode(),
            "earlier": [[place, list(names)] for place, names in self.earlier.items()],
        }

    @classmethod
    def load(cls, dumped: Mapping[str, Any] | None, num_places: int) -> "Takers":
        """Reads the saved form. None comes from an older release, which did not record takers."""
        takers = cls(num_places)
        if dumped is not None:
            takers.names = list(dumped["names"])
            takers._numbers = {name: number for number, name in enumerate(takers.names)}
            last = np.frombuffer(zlib.decompress(base64.b64decode(dumped["last"])), dtype="<i4")
            takers.last = last.astype(np.int32)
            takers.earlier = {place: tuple(names) for place, names in dumped["earlier"]}
            takers._count()
        return takers

    def _count(self) -> None:
        numbers = np.bincount(self.last[self.last >= 0], minlength=len(self.names))
        self.counts = Counter({name: int(number) for name, number in zip(self.names, numbers, strict=True)})
        for place, names in self.earlier.items():
            self.counts.update(set(names) - {self.names[self.last[place]]})
