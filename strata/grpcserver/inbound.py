"""The receiving half of a stream: bytes become messages, which wait for a reader or go straight to a listener. Bytes
that nobody has read are not credited to the peer's window, so that a sender cannot fill our memory.
"""

import asyncio
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import grpc

from strata.grpcserver.frames import FRAME_HEADER, MAX_FRAME_BYTES, MESSAGE_HEADER, PREFIX
from strata.grpcserver.limits import MAX_UNREAD_BYTES

__all__ = ["WINDOW", "InLink", "Inbound", "Unreadable"]

WINDOW = 1 << 20  # what a peer may send on a stream before somebody has read it
_GZIP = 16 + zlib.MAX_WBITS
_ENCODINGS = ("identity", "gzip")


class Unreadable(Exception):
    """What came is no message that may be read; the call ends with `code`."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code = code
        self.details = details


class InLink(Protocol):
    """What the receiving half of a stream needs of its connection. `unread` is what all streams keep in memory,
    `uncredited` what was read of the connection's window and not given back yet."""

    max_message: int
    unread: int
    uncredited: int

    def credit(self, stream: int, size: int) -> None: ...

    def consumed(self, size: int) -> None: ...


class Inbound:
    """`decode` makes a message of its bytes, when somebody takes it and not before: what waits is never larger than
    what was sent."""

    __slots__ = (
        "_early",
        "_encoding",
        "_failed",
        "_head",
        "_inbox",
        "_link",
        "_listener",
        "_max",
        "_owed",
        "_partial",
        "_size",
        "_stream",
        "_unconsumed",
        "_waiter",
        "decode",
        "ended",
    )

    def __init__(self, link: InLink, stream: int, decode: Callable[[bytes], Any], encoding: str) -> None:
        self.ended = False
        self._link = link
        self._stream = stream
        self.decode = decode
        self._max = link.max_message
        self._encoding = encoding
        self._unconsumed = 0  # of the stream's window: what came and nobody has read
        self._owed = 0  # what was read and not credited yet
        self._early = 0  # of the message that is assembled: what has been credited already
        self._partial = bytearray()
        self._inbox: deque[tuple[bytes, int]] = deque()  # messages, and what is owed for each
        self._listener: Callable[[Any], None] | None = None
        self._failed: Callable[[Exception], None]
        self._size, self._head = -1, b""  # of the last message that was heard whole, with its frame
        self._waiter: asyncio.Future[None] | None = None

    # --- from the connection

    def feed(self, data: bytes, start: int, end: int) -> None:
        """The payload of a DATA frame: most often one whole message, without compression."""
        size = end - start
        self._spend(size)
        if not self._partial and not data[start] and _size(data, start) == size - PREFIX.size <= self._max:
            self._take(data[start + PREFIX.size : end], size)
            return
        self._partial += data[start:end]
        self._assemble()

    def hear(self, data: bytes) -> bool:
        """`feed` of frames that are one message for the listener, whole and plain, and nothing else. Most of what ranks
        and agents say is that, and begins as the last one did; frame by frame it would cost twice as much. False, and
        nothing is done, if it is anything else."""
        begins_alike = len(data) == self._size and data.startswith(self._head)
        if (self._partial or not begins_alike) and not self._is_whole(data):
            return False
        size = len(data) - FRAME_HEADER.size
        self._owed += size
        self._link.uncredited += size
        if self._owed >= WINDOW // 2:
            self._owe(0)
        self._tell(data[MESSAGE_HEADER.size :])
        return True

    def _is_whole(self, data: bytes) -> bool:
        size = len(data) - FRAME_HEADER.size
        length = size - PREFIX.size
        if self._listener is None or self._partial or not 0 <= length <= self._max or size > MAX_FRAME_BYTES:
            return False
        head = MESSAGE_HEADER.pack(size >> 8, size & 0xFF, 0, 0, self._stream, 0, length)
        if not data.startswith(head):
            return False
        self._size, self._head = len(data), head
        return True

    def feed_end(self) -> None:
        if self._partial:
            raise Unreadable(grpc.StatusCode.INTERNAL, "the request ended in the middle of a message")
        self.ended = True
        self._wake()

    def _spend(self, size: int) -> None:
        self._unconsumed += size
        if self._unconsumed + self._owed > WINDOW:
            raise Unreadable(grpc.StatusCode.RESOURCE_EXHAUSTED, "more was sent than the window allows")

    def _assemble(self) -> None:
        partial = self._partial
        while len(partial) >= PREFIX.size:
            size = _size(partial, 0)
            if size > self._max:
                what = f"the message has {size:,} bytes, at most {self._max:,} are read"
                raise Unreadable(grpc.StatusCode.RESOURCE_EXHAUSTED, what)
            if len(partial) < PREFIX.size + size:
                more = len(partial) - self._early
                self._owe(more)  # it may be larger than the window
                self._early += more
                self._keep(more)
                return
            payload, compressed = bytes(partial[PREFIX.size : PREFIX.size + size]), partial[0]
            del partial[: PREFIX.size + size]
            early, self._early = self._early, 0
            self._link.unread -= early
            self._take(self._decompress(payload) if compressed else payload, PREFIX.size + size - early)

    def _decompress(self, payload: bytes) -> bytes:
        if self._encoding != "gzip":
            allowed = ", ".join(_ENCODINGS)
            raise Unreadable(grpc.StatusCode.UNIMPLEMENTED, f"encoding {self._encoding!r} is not one of {allowed}")
        inflater = zlib.decompressobj(_GZIP)
        try:
            plain = inflater.decompress(payload, self._max)
        except zlib.error as error:
            raise Unreadable(grpc.StatusCode.INTERNAL, f"the message is not gzip: {error}") from error
        if inflater.unconsumed_tail:
            raise Unreadable(
                grpc.StatusCode.RESOURCE_EXHAUSTED, f"the message inflates to more than {self._max:,} bytes"
            )
        return plain

    def _take(self, payload: bytes, owed: int) -> None:
        if self._listener is not None:
            self._owe(owed)
            self._tell(payload)
            return
        self._inbox.append((payload, owed))
        self._keep(len(payload))
        self._wake()

    def _tell(self, payload: bytes) -> None:
        assert self._listener is not None
        try:
            self._listener(payload if self.decode is bytes else self._read(payload))
        except Exception as error:
            self._failed(error)

    def _keep(self, size: int) -> None:
        link = self._link
        link.unread += size
        if link.unread > MAX_UNREAD_BYTES:
            what = f"more than {MAX_UNREAD_BYTES:,} bytes of unread and unfinished messages came on this connection"
            raise Unreadable(grpc.StatusCode.RESOURCE_EXHAUSTED, what)

    def _read(self, payload: bytes) -> Any:
        try:
            return self.decode(payload)
        except Exception as error:  # whatever a deserializer raises, the peer sent what it cannot read
            raise Unreadable(grpc.StatusCode.INTERNAL, f"the request cannot be parsed: {error}") from error

    # --- to the handler

    async def read(self) -> Any:
        """The next message, or grpc.aio.EOF."""
        while not self._inbox:
            if self.ended:
                return grpc.aio.EOF
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self.pop()

    def pop(self) -> Any:
        """The next message, which must be there."""
        payload, owed = self._inbox.popleft()
        self._link.unread -= len(payload)
        self._owe(owed)
        return self._read(payload)

    def drop(self) -> None:
        """Discards what has come and what still comes."""
        self._link.unread -= self._early + sum(len(payload) for payload, _ in self._inbox)
        self._link.consumed(self._unconsumed)
        self._unconsumed = self._owed = self._early = 0
        self._inbox.clear()
        self._partial.clear()

    def __len__(self) -> int:
        return len(self._inbox)

    def listen(self, listener: Callable[[Any], None], failed: Callable[[Exception], None]) -> None:
        """From now on every message goes to `listener`, those that wait first. `failed` hears what it raises later, and
        of what cannot be read."""
        self._listener, self._failed = listener, failed
        while self._inbox:
            listener(self.pop())

    def mute(self) -> None:
        """Discards what still comes."""
        self._listener = lambda message: None

    def _owe(self, size: int) -> None:
        """So much was read."""
        self._link.consumed(size)
        self._unconsumed -= size
        self._owed += size
        if self._owed >= WINDOW // 2:
            self._link.credit(self._stream, self._owed)
            self._owed = 0

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _size(data: bytes | bytearray, start: int) -> int:
    """What the prefix of a message says of its length."""
    return int.from_bytes(data[start + 1 : start + PREFIX.size], "big")
