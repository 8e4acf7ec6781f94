"""What connections of one loop share: their writes leave together at the end of a turn, and those that were sent more
than fits into one turn are read on one after the other.
"""

import asyncio
from collections import deque

from strata.grpcserver.wire import Wire

__all__ = ["LoopTurns"]


class LoopTurns:
    """Fulfils Turns."""

    def __init__(self) -> None:
        self._unsent: list[Wire] = []
        self._behind: deque[Wire] = deque()

    def flush_soon(self, wire: Wire) -> None:
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(wire)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        for wire in unsent:
            wire.flush()

    def resume_soon(self, wire: Wire) -> None:
        if not self._behind:
            asyncio.get_running_loop().call_soon(self._resume)
        self._behind.append(wire)

    def _resume(self) -> None:
        """One of those that sent more than fits into a turn, then the loop: what others sent comes first."""
        wire = self._behind.popleft()
        if self._behind:
            asyncio.get_running_loop().call_soon(self._resume)
        wire.turn()
