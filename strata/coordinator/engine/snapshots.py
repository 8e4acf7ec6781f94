"""Takes snapshots of the state. The event loop waits meanwhile, so how barriers ended is left to their records."""

import json
from collections import deque

from strata.cluster.events import decode_event
from strata.coordinator.journal.base import OUTCOMES, Record, Snapshot, Stored
from strata.coordinator.state.cluster import ClusterState
from strata.coordinator.state.now import Now

__all__ = ["Snapshots"]


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

    def take(self, seq: int) -> Snapshot:
        """Returns the snapshot of the state after record `seq`."""
        self._forget()
        body = json.dumps(self._state.dump(), separators=(",", ":")).encode()
        return Snapshot(seq, body, self._outcomes[0] if self._outcomes else seq + 1)

    def _forget(self) -> None:
        while len(self._outcomes) > self._state.barriers.kept:
            self._outcomes.popleft()
