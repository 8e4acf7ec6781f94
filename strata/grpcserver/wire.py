"""The bytes of one TCP connection: reading frames for a limited time per turn of the loop, and writing once per turn.

A peer that sends faster than its turns allow is not read meanwhile, and neither is one that does not read: what it
sends stays in its own memory and in the kernel's.
"""

import asyncio
import time
from abc import abstractmethod
from collections import deque
from typing import Protocol

from strata.grpcserver.frames import (
    FRAME_HEADER,
    LARGEST_WINDOW,
    MAX_FRAME_BYTES,
    PREFACE,
    ConnectionFault,
    Fault,
    Kind,
    build_frame,
)
from strata.grpcserver.limits import (
    LINGER_S,
    LITTLE_BYTES,
    READING_S,
    TURN_FRAMES,
    TURN_S,
    WAITING_BYTES,
    WRITE_BUFFER_BYTES,
)

__all__ = ["Ear", "Turns", "Wire"]

_PLAIN_HTTP = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nThis port speaks gRPC.\n"
)


class Ear(Protocol):
    """Of the stream that says the most."""

    def hear(self, data: bytes) -> bool:
        """Whether these bytes were one message of it, whole and plain, and nothing else. False, and nothing is done,
        for what must come frame by frame."""


class Turns:
    """What connections of one loop share: their writes leave together at the end of a turn, and what was sent beyond
    that which fits into one turn is read on one after the other. Who found the turn over is `late`, and is read before
    those who speak later: newcomers that went first would keep it waiting as long as they come. Who has used up a turn
    of its own is `behind` all others."""

    def __init__(self) -> None:
        self.unsent: list[Wire] = []  # who has something to write at the end of this turn
        self._late: deque[tuple[Wire, float]] = deque()  # each since when
        self._behind: deque[tuple[Wire, float]] = deque()
        self._resuming = False
        self._reading_ends = 0.0  # in this turn of the loop, if something was read in it

    def flush_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        unsent, self.unsent = self.unsent, []
        for wire in unsent:
            wire.flush()

    def is_over(self) -> bool:
        """Whether so much was read in this turn of the loop that the rest must wait for its next ones, or others wait
        already."""
        if self._late:
            return True
        now = time.monotonic()
        if not self._reading_ends:
            self._reading_ends = now + READING_S
            asyncio.get_running_loop().call_soon(self._end_reading)
        return now > self._reading_ends

    def _end_reading(self) -> None:
        self._reading_ends = 0.0

    def unread_s(self) -> float:
        """How long what somebody said has lain here unread: for so long, silence proves nothing."""
        since = [waiting[0][1] for waiting in (self._late, self._behind) if waiting]
        return time.monotonic() - min(since) if since else 0.0

    def resume_soon(self, wire: "Wire", *, late: bool = False) -> None:
        (self._late if late else self._behind).append((wire, time.monotonic()))
        self._schedule()

    def _schedule(self) -> None:
        if (self._late or self._behind) and not self._resuming:
            self._resuming = True
            asyncio.get_running_loop().call_soon(self._resume)

    def _resume(self) -> None:
        """As many of those that are late as a turn of the loop may read, then some that are behind, for as long as one
        of them may take, then the loop: a ping of somebody else comes before the rest."""
        try:
            self._read(self._late, READING_S)
            self._read(self._behind, TURN_S)
        finally:
            self._resuming = False
            self._schedule()

    def _read(self, waiting: "deque[tuple[Wire, float]]", seconds: float) -> None:
        ends = time.monotonic() + seconds
        for _ in range(len(waiting)):
            waiting.popleft()[0].turn()
            if time.monotonic() > ends:
                break


class Wire(asyncio.Protocol):
    """Splits bytes into frames. What a frame means is for the subclass."""

    __slots__ = (
        "_behind",
        "_buffer",
        "_ended",
        "_outgoing",
        "_preface_due",
        "_reads",
        "_transport",
        "_turns",
        "ear",
        "heard",
        "paused",
        "pinged",
    )

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._transport: asyncio.Transport
        self._buffer = b""
        self._behind = False  # what came waits in the buffer
        self._reads = True
        self._ended = False
        self._preface_due = True
        self._outgoing: list[bytes] = []
        self.ear: Ear | None = None
        self.paused = False  # the peer does not take what was written
        self.heard = True  # since the server's keepalive looked last
        self.pinged = False

    @abstractmethod
    def on_data(self, stream: int, flags: int, data: bytes, start: int, end: int) -> None:
        """A DATA frame without padding, in place."""

    @abstractmethod
    def on_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None: ...

    @abstractmethod
    def on_fault(self, fault: ConnectionFault) -> None:
        """The peer broke a rule; nothing it sends is read any more."""

    @abstractmethod
    def on_writable(self) -> None:
        """The peer takes bytes again."""

    # --- asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP gives no less
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self.heard = True
        self.on_writable()
        if self._behind and not self._ended:
            self._turns.resume_soon(self)

    def data_received(self, data: bytes) -> None:
        self.heard = True
        if self._buffer:
            data = self._buffer + data
        if self._ended:
            self._buffer = b""
        elif self._behind or self.paused or (len(data) > LITTLE_BYTES and self._turns.is_over()):
            self._buffer = data
            self._fall_behind(len(data), late=True)
        elif self.ear is not None and self.ear.hear(data):
            self._buffer = b""
        else:
            self._take(data)

    def eof_received(self) -> None:
        """The peer says no more. What it said last is heard before its connection ends."""
        while self._behind and not self.paused and not self._ended:
            self.turn()

    # --- frames

    def turn(self) -> None:
        """Goes on with what waits. The server gives one connection a turn, then others have theirs."""
        if self._ended or self.paused:
            return
        self._behind = False
        self._take(self._buffer)
        if not self._reads and not self._behind and not self._ended:
            self._reads = True
            self._transport.resume_reading()

    def _take(self, data: bytes) -> None:
        try:
            at = self._take_preface(data) if self._preface_due else 0
            at = self._take_frames(data, at)
        except ConnectionFault as fault:
            self._fail(fault)
            return
        self._buffer = data[at:]

    def _take_preface(self, data: bytes) -> int:
        if not PREFACE.startswith(data[: len(PREFACE)]):
            self.write(_PLAIN_HTTP)
            raise ConnectionFault(Fault.PROTOCOL_ERROR, "the peer does not speak HTTP/2")
        if len(data) < len(PREFACE):
            return 0
        self._preface_due = False
        return len(PREFACE)

    def _take_frames(self, data: bytes, at: int) -> int:
        if self._preface_due:
            return 0
        size = len(data)
        unpack = FRAME_HEADER.unpack_from
        turn_ends, num_frames = 0.0, 0
        while size - at >= 9:
            high, low, kind, flags, stream = unpack(data, at)
            length = high << 8 | low
            if length > MAX_FRAME_BYTES:
                raise ConnectionFault(Fault.FRAME_SIZE_ERROR, f"a frame of {length:,} bytes")
            end = at + 9 + length
            if end > size:
                break
            stream &= LARGEST_WINDOW
            if kind == 0 and not flags & 0x8:
                self.on_data(stream, flags, data, at + 9, end)
            else:
                self.on_frame(kind, flags, stream, data[at + 9 : end])
            at = end
            if at < size:
                now = time.monotonic()
                num_frames += 1
                if not turn_ends:
                    turn_ends = now + TURN_S
                elif now > turn_ends and num_frames >= TURN_FRAMES:
                    self._fall_behind(size - at, late=False)
                    break
        return at

    def _fall_behind(self, size: int, *, late: bool) -> None:
        """So much waits for a later turn. Nothing more is read meanwhile from a peer that has sent much or does not
        read; for one that has said a few words, to stop and start again would cost more than to read them."""
        if not self._behind:
            self._behind = True
            if not self.paused:
                self._turns.resume_soon(self, late=late)
        if self._reads and (self.paused or size > WAITING_BYTES):
            self._reads = False
            self._transport.pause_reading()

    # --- writes

    def write(self, data: bytes) -> None:
        """All writes of one turn of the loop leave together, and those of all connections one right after the other: a
        peer that is woken for each write costs more than the write."""
        if not self._outgoing:
            unsent = self._turns.unsent
            if not unsent:
                self._turns.flush_soon()
            unsent.append(self)
        self._outgoing.append(data)

    def write_now(self, data: bytes) -> None:
        """At once, or behind what was written in this turn."""
        if self._outgoing:
            self._outgoing.append(data)
        elif not self._ended:
            self._transport.write(data)

    def flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        if outgoing and not self._ended:
            self._transport.write(outgoing[0] if len(outgoing) == 1 else b"".join(outgoing))

    # --- for the server

    def check_alive(self) -> None:
        """Called every so often: asks a silent peer, and cuts off one that did not answer, or did not even greet."""
        if self.heard and not self._preface_due:
            self.heard = self.pinged = False
        elif self.pinged:
            self.abort()
        else:
            self.pinged = True
            if not self._preface_due:
                self.write(build_frame(Kind.PING, 0, 0, b"strata\0\0"))

    def close(self) -> None:
        """Closes the connection after what has been written."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Closes the connection at once, without what has not been sent."""
        self._ended = True
        self._transport.abort()

    def _fail(self, fault: ConnectionFault) -> None:
        """Says why, and hangs up a little later: at once, the system would drop what the peer has not read yet."""
        self.on_fault(fault)
        self.flush()
        self._ended = True
        self._buffer = b""
        if self.paused:
            self.abort()
            return
        if self._transport.can_write_eof():  # TLS has no half-closed connections
            self._transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER_S, self.abort)
