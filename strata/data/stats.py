"""What a loader has done so far: counts for the dashboard, so that nothing is skipped, dropped or repeated unseen."""

import threading
from collections import deque
from dataclasses import dataclass

from strata.errors import DataError

__all__ = ["LoaderStats", "SkipLog"]

_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderStats:
    """A snapshot. `num_skipped` counts bad rows, blocks and files; `wait_s` is time spent waiting for data."""

    num_batches: int
    num_samples: int
    num_padded: int
    num_dropped: int
    num_skipped: int
    wait_s: float
    ahead_bytes: int
    last_errors: tuple[str, ...]


class SkipLog:
    """Collects what was skipped, from any thread; keeps the last few messages.

    The same row met again, in the next epoch or by another lane, counts once (as far as the memory for it goes).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: deque[str] = deque(maxlen=10)
        self._known: set[tuple[str, int | None]] = set()
        self.count = 0

    def __call__(self, error: DataError) -> None:
        place = (error.file, error.row)
        with self._lock:
            if place in self._known:
                return
            self.count += 1
            self._last.append(str(error))
            if len(self._known) < _REMEMBERED:
                self._known.add(place)

    def last(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._last)
