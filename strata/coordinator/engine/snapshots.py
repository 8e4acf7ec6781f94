"""Takes snapshots of the state, a few milliseconds at a time, because the event loop waits meanwhile. How barriers
ended is left to their records.
"""

import json
import time
from collections import deque
from collections.abc import Iterator

from strata.cluster.events import decode_event
from strata.coordinator.journal.base import OUTCOMES, Record, Snapshot, Stored
from strata.coordinator.state.cluster import ClusterState
from strata.coordinator.state.now import Now
from strata.types.plain import json_parts

__all__ = ["Draft", "Snapshots"]


class Draft:
    """A snapshot of the state as it was after record `seq`, while it is written out."""

    def __init__(self, seq: int, parts: Iterator[str], outcomes_from: int) -> None:
        self._seq = seq
        self._parts = parts
        self._written: list[str] = []
        self._outcomes_from = outcomes_from

    def go_on(self, seconds: float) -> Snapshot | None:
        """Writes for about so long; returns the snapshot when it is whole."""
        ends = time.perf_counter() + seconds
        for part in self._parts:
            self._written.append(part)
            if time.perf_counter() > ends:
                return None
        return Snapshot(self._seq, "".join(self._written).encode(), self._outcomes_from)


class Snapshots:
    """Knows which records the state's remembered outcomes are in."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._outcomes: deque[int] = deque()  # their numbers, oldest first; may hold some that the state has forgotten

    def restore(self, stored: Stored, now: Now) -> None:
        """Fills a fresh state with everything that is stored."""
        if stored.snapshot is not None:
            self._state.load(json.loads(stored.snapshot.body), now)
        for record in (*stored.outcomes, *stored.records):
            self._state.evolve(decode_event(record.kind, record.body), now)
            self.note(record)

    def note(self, record: Record) -> None:
        """Remembers a record that the state has applied, if it is a barrier's end."""
        if record.kind in OUTCOMES:
            self._outcomes.append(record.seq)
            self._forget()

    def begin(self, seq: int) -> Draft:
        """Begins the snapshot of the state after record `seq`."""
        self._forget()
        return Draft(seq, json_parts(self._state.copy()), self._outcomes[0] if self._outcomes else seq + 1)

    def _forget(self) -> None:
        while len(self._outcomes) > self._state.barriers.kept:
            self._outcomes.popleft()
