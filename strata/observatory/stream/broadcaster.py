"""One stream of numbered events for all browsers. Each event is encoded once; each client reads from the shared ring at
its own speed, and one that falls out of it is told to resync. Nobody ever waits for a client.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from strata.clock import Clock
from strata.errors import Busy
from strata.observatory.answers.stream import Resync, RunsMeta
from strata.observatory.records.encoding import encode
from strata.observatory.stream.ring import Event, Filter, Frames, Ring, RunPart, frame

__all__ = ["PING", "Broadcaster"]

PING = b": ping\n\n"
_PING_S = 15.0
_OPENING = b"retry: 2000\n\n"
# A client that is this far behind is better served by a snapshot.
_MAX_LAG_BYTES = 8 << 20
# What one client is handed at a time; the rest waits in the ring, once for all.
_PIECE_BYTES = 256 * 1024
_MAX_CLIENTS = 1_000
# The longest that a page is kept waiting for its first picture after a start; the engine's own start takes two seconds.
_HOLD_S = 6.0

SnapshotOf = Callable[[Filter], bytes]


# The event id of a resync: a client that loses the connection before its snapshot comes back with it and starts over.
_NO_CURSOR = "resync"


class Broadcaster:
    """`snapshot(filter)` must describe the state as of the last published event; both run on the loop, so it does."""

    def __init__(self, snapshot: SnapshotOf, clock: Clock, ring: Ring | None = None) -> None:
        self._snapshot = snapshot
        self._clock = clock
        self._ring = ring or Ring()
        self._frames = Frames()
        self._shared: tuple[int, Filter, bytes] | None = None  # the last snapshot, until the next flush
        self._news = asyncio.Event()
        self._closed = False
        self._released = asyncio.Event()
        self._released.set()
        self.epoch = uuid.uuid4().hex[:12]
        self.num_clients = 0
        self.resyncs = 0
        self._last_news = clock.monotonic()
        self._flushed_seq = 0

    @property
    def last_seq(self) -> int:
        return self._ring.last_seq

    def publish(self, name: str, body: Any, *, topic: str = "") -> None:
        """An event that is the same for all; a record is encoded here, bytes are sent as they are."""
        data = body if isinstance(body, bytes) else encode(body)
        self._ring.append(lambda seq: Event(seq, topic, name, self._id(seq), data))

    def publish_runs(self, news: RunsMeta, every: Callable[[], RunsMeta], num_bytes: int) -> None:
        """News of runs for sparse clients. The others get all of them, about `num_bytes`, as they are when the first of
        these clients reads it: megabytes that nobody asks for are neither encoded nor kept."""
        thin = encode(news)
        self._ring.append(
            lambda seq: Event(
                seq,
                "metrics",
                "runs_meta",
                self._id(seq),
                thin=thin,
                make=lambda: encode(every()),
                num_bytes=num_bytes,
            )
        )

    def publish_delta(self, parts: dict[str, RunPart]) -> None:
        """New points, by run."""
        self._ring.append(lambda seq: Event(seq, "metrics", "delta", self._id(seq), by_run=parts))

    def resync(self, reason: str) -> None:
        """The cache was changed behind the deltas' back: everybody starts over from a snapshot."""
        self.publish("resync", Resync(reason=reason))

    def hold(self) -> None:
        """Until `release`, or for a few seconds, nobody gets a picture: history is being loaded, and a page that comes
        back after a restart would replace what it shows by less."""
        self._released.clear()

    def release(self) -> None:
        self._released.set()

    def flush(self) -> None:
        """Wakes the clients when there is news; also each 15 s without, for the ping."""
        self._shared = None
        now = self._clock.monotonic()
        if self._flushed_seq == self._ring.last_seq and now - self._last_news < _PING_S:
            return
        self._flushed_seq = self._ring.last_seq
        self._last_news = now
        news, self._news = self._news, asyncio.Event()
        news.set()

    def close(self) -> None:
        """Ends every stream."""
        self._closed = True
        self._released.set()
        self._news.set()

    def check_room(self) -> None:
        """Raises Busy when there are as many clients as may be."""
        if self.num_clients >= _MAX_CLIENTS:
            raise Busy(f"{_MAX_CLIENTS:,} clients follow the stream already", hint="Close some tabs, or try again.")

    async def stream(self, wanted: Filter, cursor: str | None) -> AsyncGenerator[bytes]:
        """One client's bytes: what it missed, or a snapshot, then everything new, with pings."""
        self.num_clients += 1
        try:
            if not self._released.is_set() and wanted.wants("metrics"):
                yield PING  # the response begins: its client knows that somebody is there
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_HOLD_S):
                        await self._released.wait()
            seq = self._parse(cursor) if cursor is not None else None
            greeting = _OPENING
            if seq is None or self._why_resync(wanted, seq) is not None:
                moved = "the stream has moved on since this cursor" if cursor is not None else None
                seq, told, snapshot = self._fresh(wanted, moved)
                for piece in _pieces(_OPENING + told, snapshot):
                    yield piece
                greeting = b""
            sent_at = self._clock.monotonic()
            while not self._closed:
                if seq == self._ring.last_seq and not greeting:
                    await self._news.wait()
                if (why := self._why_resync(wanted, seq)) is not None:
                    seq, told, snapshot = self._fresh(wanted, why)
                    for piece in _pieces(told, snapshot):
                        yield piece
                    sent_at = self._clock.monotonic()
                    continue
                seq, data = self._next(wanted, seq)
                data, greeting = greeting + data, b""
                now = self._clock.monotonic()
                if not data and now - sent_at >= _PING_S:
                    data = PING
                if data:
                    sent_at = now
                    yield data
        finally:
            self.num_clients -= 1

    def _why_resync(self, wanted: Filter, seq: int) -> str | None:
        """None when the ring holds all that this client still needs, and not too much of it."""
        events = self._ring.since(seq)
        if events is None:
            return "this client reads too slowly"
        if len(events) > 1 and sum(event.size(wanted.runs, sparse=wanted.sparse) for event in events) > _MAX_LAG_BYTES:
            return "this client reads too slowly"
        return "history was loaded" if any(event.name == "resync" for event in events) else None

    def _next(self, wanted: Filter, seq: int) -> tuple[int, bytes]:
        """The events after `seq`, as many as fit into a piece."""
        frames: list[bytes] = []
        room = _PIECE_BYTES
        for event in self._ring.since(seq) or []:
            if room <= 0:
                break
            frames.append(self._frames.of(event, wanted))
            room -= len(frames[-1])
            seq = event.seq
        return seq, b"".join(frames)

    def _fresh(self, wanted: Filter, why: str | None) -> tuple[int, bytes, bytes]:
        """A snapshot, and before it the event that tells the client to replace what it has."""
        seq, told = self._ring.last_seq, b""
        if why is not None:
            self.resyncs += 1
            told = frame("resync", _NO_CURSOR, encode(Resync(reason=why)))
        if not wanted.wants("metrics"):
            return seq, told, b""
        if self._shared is None or self._shared[:2] != (seq, wanted):
            self._shared = (seq, wanted, frame("snapshot", self._id(seq), self._snapshot(wanted)))
        return seq, told, self._shared[2]

    def _id(self, seq: int) -> str:
        return f"{self.epoch}:{seq}"

    def _parse(self, cursor: str) -> int | None:
        epoch, _, number = cursor.rpartition(":")
        return int(number) if epoch == self.epoch and number.isdecimal() else None


def _pieces(told: bytes, snapshot: bytes) -> Iterator[bytes]:
    """Each is handed over when the client has taken the one before; what is not yet sent is shared with others."""
    for at in range(0, len(snapshot) or 1, _PIECE_BYTES):
        yield told + snapshot[at : at + _PIECE_BYTES]
        told = b""
