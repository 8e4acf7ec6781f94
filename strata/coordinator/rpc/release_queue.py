"""Releases of a large barrier on their way out: those of some hosts leave before those of the next are made, so that
the first of a thousand hosts does not wait for the last one, and the loop serves others between.
"""

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Iterator

__all__ = ["ReleaseQueue"]

_AT_ONCE = 125  # hosts in one turn of the loop: with eight ranks each that takes 2 ms
_LEFT_S = 0.01  # after which the last of them have left
_OLDER = 20  # every so many times those that outlived earlier passes are looked at, too


class ReleaseQueue:
    """In order; the first ones are told in the turn in which they are added. When a large barrier was told, Python's
    collector passes over the young: the ranks compute now, and it would come in the middle of a next barrier otherwise
    (of 10,000 ranks in every third, for 5 to 11 ms)."""

    def __init__(self) -> None:
        self._waiting: deque[Iterator[Callable[[], None]]] = deque()
        self._is_large = False
        self._num_passes = 0

    def add(self, releases: Iterator[Callable[[], None]]) -> None:
        """Each of them tells one host."""
        self._waiting.append(releases)
        if len(self._waiting) == 1:
            self._go_on()

    def finish(self) -> None:
        """Tells all who are left: something else is to be told, which must not overtake it."""
        while (tell := self._next()) is not None:
            tell()

    def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            for _ in range(_AT_ONCE):
                if (tell := self._next()) is None:
                    break
                tell()
        finally:  # whatever became of one
            if self._waiting:
                self._is_large = True
                loop.call_soon(self._go_on)
            elif self._is_large:
                self._is_large = False
                loop.call_later(_LEFT_S, self._collect)

    def _next(self) -> Callable[[], None] | None:
        while self._waiting:
            tell = next(self._waiting[0], None)
            if tell is not None:
                return tell
            self._waiting.popleft()
        return None

    def _collect(self) -> None:
        self._num_passes += 1
        gc.collect(0 if self._num_passes % _OLDER else 1)
