"""Releases of a large barrier on their way out: each leaves before the next one is made, and the loop serves others
between some hosts and the next.
"""

import asyncio
import gc
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from strata.coordinator.state.outcomes import Outcome

__all__ = ["ReleaseQueue"]

_AT_ONCE = 128  # hosts in one turn of the loop: that takes less than a millisecond
_LARGE = 1  # turns of a barrier after which there is more to collect than a next one would leave alone
_LEFT_S = 0.01  # after which the last of them have left
_OLDER = 20  # every so many times those that outlived earlier passes are looked at, too

Tell = Callable[[Outcome, str, int], None]


class ReleaseQueue:
    """In order; the first ones are told in the turn in which they are added. When a large barrier was told, Python's
    collector passes over the young: the ranks compute now, and it would come in the middle of a next barrier otherwise
    (of 10,000 ranks in every third, for 5 to 11 ms)."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Outcome, str, Iterator[tuple[Tell, int]]]] = deque()
        self._turns = 0
        self._num_passes = 0

    def add(self, outcome: Outcome, request_id: str, hosts: Iterator[tuple[Tell, int]]) -> None:
        """Tells each of these how it ended for those who came with this request, and the place of its first rank."""
        self._waiting.append((outcome, request_id, hosts))
        if len(self._waiting) == 1:
            self._go_on()

    def finish(self) -> None:
        """Tells all who are left: something else is to be told, which must not overtake it."""
        while self._waiting:
            self._tell(_AT_ONCE)

    def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._tell(_AT_ONCE)
        finally:  # whatever became of one
            self._turns += 1
            if self._waiting:
                loop.call_soon(self._go_on)
            else:
                if self._turns > _LARGE:
                    loop.call_later(_LEFT_S, self._collect)
                self._turns = 0

    def _tell(self, number: int) -> None:
        while self._waiting and number:
            outcome, request_id, hosts = self._waiting[0]
            for tell, place in islice(hosts, number):
                number -= 1
                tell(outcome, request_id, place)
            if number:
                self._waiting.popleft()

    def _collect(self) -> None:
        self._num_passes += 1
        gc.collect(0 if self._num_passes % _OLDER else 1)
