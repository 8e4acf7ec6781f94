"""Releases of a large barrier on their way out: those of some hosts leave before those of the next are made, so that
the first of a thousand hosts does not wait for the last one, and the loop serves others between.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

__all__ = ["ReleaseQueue"]

_AT_ONCE = 125  # hosts in one turn of the loop: with eight ranks each that takes 2 ms


class ReleaseQueue:
    """In order; the first ones are told in the turn in which they are added."""

    def __init__(self) -> None:
        self._waiting: deque[Iterator[Callable[[], None]]] = deque()

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
        try:
            for _ in range(_AT_ONCE):
                if (tell := self._next()) is None:
                    return
                tell()
        finally:  # whatever became of one
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._go_on)

    def _next(self) -> Callable[[], None] | None:
        while self._waiting:
            tell = next(self._waiting[0], None)
            if tell is not None:
                return tell
            self._waiting.popleft()
        return None
