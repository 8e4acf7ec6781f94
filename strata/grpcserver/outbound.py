"""The sending half of a stream: messages leave at once while both windows have room, else they wait here in order."""

import asyncio
from collections import deque
from typing import Protocol

from strata.grpcserver.frames import FRAME_HEADER, MESSAGE_HEADER, PREFIX, Kind
from strata.grpcserver.headers import RESPONSE_HEAD
from strata.grpcserver.limits import MAX_HELD_BYTES

__all__ = ["Link", "Outbound"]


class Link(Protocol):
    """What a stream needs of its connection, which is told when more waits for its peer than may be held. `blocked` are
    the streams that wait for the connection, not for a window of their own; `held` is what all streams hold back."""

    window: int
    max_frame: int
    paused: bool
    blocked: "dict[int, Outbound]"
    held: int

    def write(self, data: bytes) -> None: ...

    def write_now(self, data: bytes) -> None: ...

    def headers(self, stream: int, block: bytes, *, end: bool) -> bytes: ...

    def too_slow(self, stream: int, sentence: str) -> None: ...


class Outbound:
    """Counts what the peer allows. `head` goes out before the first message. After `finish` nothing more is sent."""

    __slots__ = (
        "_begun",
        "_ended",
        "_head",
        "_header",
        "_held",
        "_link",
        "_queue",
        "_size",
        "_stream",
        "_trailers",
        "_waiters",
        "window",
    )

    def __init__(self, link: Link, stream: int, window: int, head: bytes = RESPONSE_HEAD) -> None:
        self.window = window
        self._head = head
        self._link = link
        self._stream = stream
        self._queue: deque[bytes] = deque()
        self._held = 0
        self._size, self._header = -1, b""  # of the last message: most often the next one is as long
        self._begun = False
        self._ended = False
        self._trailers: bytes | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def send(self, payload: bytes) -> None:
        """One message: the first one with what else is written in this turn of the loop, those that follow at once."""
        if self._ended:
            return
        length = len(payload)
        size = PREFIX.size + length
        link = self._link
        if self._queue or size > self.window or size > link.window or size > link.max_frame or link.paused:
            self._hold(PREFIX.pack(0, length) + payload)
            return
        self.window -= size
        link.window -= size
        if size != self._size:
            self._size, self._header = size, MESSAGE_HEADER.pack(size >> 8, size & 0xFF, 0, 0, self._stream, 0, length)
        if self._begun:
            link.write_now(self._header + payload)
        else:
            link.write(self._begin() + self._header + payload)

    def finish(self, trailers: bytes) -> None:
        """Ends the stream after what is still held."""
        if self._ended:
            return
        self._ended = True
        if self._queue:
            self._trailers = trailers
        else:
            self._write_trailers(trailers)

    def drop(self) -> None:
        """The stream is gone: nothing of it can be sent any more."""
        self._ended = True
        self._queue.clear()
        self._link.held -= self._held
        self._held = 0
        self._link.blocked.pop(self._stream, None)
        self._wake()

    @property
    def done(self) -> bool:
        """Whether everything, trailers included, has been handed on."""
        return self._ended and not self._queue

    async def drained(self) -> None:
        """Returns when nothing is held."""
        while self._queue:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def flush(self) -> bool:
        """Sends what the windows allow now. True when the stream has ended by it."""
        link, queue = self._link, self._queue
        while queue:
            if self.window <= 0:
                link.blocked.pop(self._stream, None)
                return False
            if link.paused or link.window <= 0:
                link.blocked[self._stream] = self
                return False
            data = queue[0]
            room = min(self.window, link.window, link.max_frame)
            part = data[:room]
            if len(part) == len(data):
                queue.popleft()
            else:
                queue[0] = data[room:]
            self._write_part(part)
        link.blocked.pop(self._stream, None)
        self._wake()
        if self._trailers is None:
            return False
        self._write_trailers(self._trailers)
        self._trailers = None
        return True

    def _hold(self, data: bytes) -> None:
        if self._link.held > MAX_HELD_BYTES:
            self._link.too_slow(self._stream, f"{self._link.held:,} bytes wait for a peer that does not read")
            return
        for at in range(0, len(data), self._link.max_frame):  # in frames' sizes, so that no long tail is copied often
            self._queue.append(data[at : at + self._link.max_frame])
        self._held += len(data)
        self._link.held += len(data)
        self.flush()

    def _begin(self) -> bytes:
        self._begun = True
        return self._link.headers(self._stream, self._head, end=False)

    def _write_part(self, part: bytes) -> None:
        size = len(part)
        self._held -= size
        self._link.held -= size
        self.window -= size
        self._link.window -= size
        frame = FRAME_HEADER.pack(size >> 8, size & 0xFF, Kind.DATA, 0, self._stream) + part
        self._link.write(frame if self._begun else self._begin() + frame)

    def _write_trailers(self, trailers: bytes) -> None:
        block = trailers if self._begun else self._head + trailers
        self._begun = True
        self._link.write(self._link.headers(self._stream, block, end=True))

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()
