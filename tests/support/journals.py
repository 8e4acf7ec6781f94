"""A journal as its owner, the coordinator, uses it."""

import asyncio

from strata.coordinator.journal.base import Journal, Record, Stored

__all__ = ["Owner", "records"]


def records(first: int, last: int) -> list[Record]:
    return [Record(seq, 1.5, "Kind", f"body {seq} ä".encode()) for seq in range(first, last + 1)]


class Owner:
    """What a coordinator does with its journal."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.durable = 0
        self.failure: BaseException | None = None
        self._changed = asyncio.Event()
        self.stored = Stored(None, [], [])

    @classmethod
    async def open(cls, journal: Journal) -> "Owner":
        owner = cls(journal)
        owner.stored = await journal.open(owner._on_durable, owner._on_failure)
        return owner

    def _on_durable(self, seq: int) -> None:
        assert seq > self.durable, "numbers only grow"
        self.durable = seq
        self._changed.set()

    def _on_failure(self, error: BaseException) -> None:
        self.failure = error
        self._changed.set()

    async def reach(self, seq: int) -> None:
        async with asyncio.timeout(10):
            while self.durable < seq and self.failure is None:
                self._changed.clear()
                await self._changed.wait()
