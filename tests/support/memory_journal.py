"""A journal that forgets everything with its process: for tests and simulations, where it can also crash on purpose."""

from collections.abc import Callable, Mapping

from strata.coordinator.journal.base import OUTCOMES, Record, Snapshot, Stored

__all__ = ["MemoryJournal"]


class MemoryJournal:
    """Durable at once while `hold` is False; else when `flush` is called, and `crash` loses what was not flushed. What
    was kept, where it `keeps`, is lost only with the power."""

    def __init__(self, *, keeps: bool = False) -> None:
        self.hold = False
        self._keeps = keeps
        self._kept: list[Record] = []  # the first ones of those that are pending
        self._records: list[Record] = []
        self._private: dict[str, bytes] = {}
        self._pending: list[Record] = []
        self._pending_private: dict[str, bytes] = {}
        self._pending_snapshot: Snapshot | None = None
        self._snapshot: Snapshot | None = None
        self._on_durable: Callable[[int], None] = lambda seq: None

    async def open(self, on_durable: Callable[[int], None], on_failure: Callable[[BaseException], None]) -> Stored:
        del on_failure  # memory does not fail
        return self.begin(on_durable)

    def begin(self, on_durable: Callable[[int], None]) -> Stored:
        """`open`, for a simulation that has no event loop."""
        self._on_durable = on_durable
        snapshot = self._snapshot
        if snapshot is None:
            return Stored(None, [], list(self._records), dict(self._private))
        older = [record for record in self._records if snapshot.outcomes_from <= record.seq <= snapshot.seq]
        outcomes = [record for record in older if record.kind in OUTCOMES]
        after = [record for record in self._records if record.seq > snapshot.seq]
        return Stored(snapshot, outcomes, after, dict(self._private))

    def append(self, records: list[Record], private: Mapping[str, bytes] | None = None) -> None:
        self._pending.extend(records)
        self._pending_private |= private or {}
        if not self.hold:
            self.flush()

    def keep(self, record: Record) -> bool:
        if self._keeps:
            assert self._kept == self._pending, "kept behind what is neither kept nor durable"
            self._kept.append(record)
            self.append([record])
        return self._keeps

    def flush(self) -> None:
        """Everything appended so far becomes durable."""
        if self._pending_snapshot is not None:
            self._snapshot, self._pending_snapshot = self._pending_snapshot, None
        if self._pending:
            self._records.extend(self._pending)
            self._private |= self._pending_private
            self._pending, self._pending_private, self._kept = [], {}, []
            self._on_durable(self._records[-1].seq)

    def crash(self, *, power: bool = False) -> None:
        """What was not flushed never happened. What was kept did, unless the power failed."""
        if not power:
            self._records.extend(self._kept)
        self._pending, self._pending_private, self._kept = [], {}, []
        self._pending_snapshot = None

    def save_snapshot(self, snapshot: Snapshot) -> None:
        self._pending_snapshot = snapshot
        if not self.hold:
            self.flush()

    def leads(self) -> bool:
        return True

    def take_commit_times(self) -> list[float]:
        return []

    async def close(self) -> None:
        self.flush()
