"""Attempts in the store: read at the start and now and then, for another observatory on the same store may have written
some; and the series of which an attempt does steps again, read anew as soon as the store knows of it.
"""

import asyncio
import logging

from strata.errors import StoreUnavailable
from strata.observatory.background.part import Part
from strata.observatory.history.loader import History
from strata.observatory.live.view import LiveView
from strata.observatory.store.base import Store, own_rows
from strata.observatory.store.superseded import STARTS
from strata.protocol.generated.telemetry_pb2 import AttemptStart

__all__ = ["AttemptHistory"]

_log = logging.getLogger(__name__)
_RETRY_S = 0.5
_NUM_ROWS = "SELECT count() AS n FROM {db}.attempts"


class AttemptHistory(Part):
    """One task that reads outdated series; until it has, they are in no cache, and every answer asks the store."""

    def __init__(self, store: Store, history: History, live: LiveView) -> None:
        self._store = store
        self._history = history
        self._live = live
        self._num_rows = 0
        self._wake = asyncio.Event()
        live.on_outdated = self._wake.set

    async def load(self) -> None:
        """Every start that the store holds, when there are more than at the last look."""
        counted = await own_rows(self._store, _NUM_ROWS)
        count = int(counted[0]["n"]) if counted else 0
        if count == self._num_rows:
            return
        rows = await own_rows(self._store, STARTS)
        self._num_rows = count
        starts = []
        for row in rows:
            at_ms = row.pop("ms")
            known = {name: value for name, value in row.items() if value is not None}
            starts.append(AttemptStart(**known, event_time_ms=at_ms))
        self._live.tick()
        self._live.supersede(self._live.attempts.begin(starts))

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            numbers, self._live.outdated = sorted(self._live.outdated), set()
            if not numbers:
                continue
            try:
                await self._history.fetch(self._live, numbers)
            except StoreUnavailable as error:
                _log.info("series with superseded points are read again later: %s", error.message)
                self._live.outdated.update(numbers)
                self._wake.set()
                await asyncio.sleep(_RETRY_S)
                continue
            self._live.publish_runs()
            self._live.stream.resync("steps of a run were done again")
