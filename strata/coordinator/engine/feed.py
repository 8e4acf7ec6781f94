"""What happened, for those who follow: durable records in order, resumable by number. A follower that cannot keep up is
cut off and comes back by number; it never slows the coordinator.
"""

import asyncio
from collections import deque

from strata.coordinator.journal.base import Record

__all__ = ["Feed", "Follower"]

_RING = 20_000
_QUEUE = 4_096
_BYTES = 64 << 20  # of either at most: the release of 10,000 ranks is a record of half a megabyte


class Follower:
    """One reader. `next` gives the batches in order; `cut` is set when it fell behind."""

    def __init__(self) -> None:
        self._batches: asyncio.Queue[list[Record]] = asyncio.Queue(_QUEUE)
        self._num_bytes = 0
        self.cut = False

    def offer(self, records: list[Record]) -> None:
        if self._batches.full() or self._num_bytes > _BYTES:
            self.cut = True
        else:
            self._batches.put_nowait(records)
            self._num_bytes += _size(records)

    async def next(self) -> list[Record]:
        records = await self._batches.get()
        self._num_bytes -= _size(records)
        return records


class Feed:
    """The ring of recent records and everybody who follows it."""

    def __init__(self) -> None:
        self._ring: deque[Record] = deque()
        self._num_bytes = 0
        self._followers: set[Follower] = set()
        self.seq = 0

    def start_after(self, seq: int, records: list[Record]) -> None:
        """What the journal held at the start: followers from before the restart can go on."""
        self._keep(records)
        self.seq = records[-1].seq if records else seq

    def publish(self, records: list[Record]) -> None:
        self._keep(records)
        self.seq = records[-1].seq
        for follower in self._followers:
            follower.offer(records)

    def _keep(self, records: list[Record]) -> None:
        self._ring.extend(records)
        self._num_bytes += _size(records)
        while len(self._ring) > _RING or self._num_bytes > _BYTES:
            self._num_bytes -= self._ring.popleft().size

    def since(self, seq: int) -> list[Record] | None:
        """The records after `seq`; None when they are no longer all here (or never were)."""
        if seq == self.seq:
            return []
        if seq > self.seq or not self._ring or self._ring[0].seq > seq + 1:
            return None
        return [record for record in self._ring if record.seq > seq]

    def follow(self) -> Follower:
        follower = Follower()
        self._followers.add(follower)
        return follower

    def leave(self, follower: Follower) -> None:
        self._followers.discard(follower)


def _size(records: list[Record]) -> int:
    return sum(record.size for record in records)
