"""One TCP connection: HTTP/2 frames in, calls out of them, and the peer's rules for what is sent.

Whatever a peer sends, the worst that happens is the end of its own connection.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from strata.grpcserver.call import Call, Refusal
from strata.grpcserver.frames import (
    DEFAULT_WINDOW,
    FRAME_HEADER,
    LARGEST_WINDOW,
    MAX_FRAME_BYTES,
    PREFACE,
    ConnectionFault,
    Fault,
    Flag,
    Kind,
    Setting,
    build_frame,
    build_headers,
    parse_settings,
    strip_padding,
)
from strata.grpcserver.headers import (
    MAX_BLOCK_BYTES,
    NO_TABLE,
    RESPONSE_HEAD,
    HeaderReader,
    Metadata,
    build_refusal,
    build_trailers,
)
from strata.grpcserver.inbound import WINDOW
from strata.grpcserver.outbound import Outbound

__all__ = ["Check", "Connection", "Gate", "Service"]

_log = logging.getLogger(__name__)

_CONNECTION_WINDOW = 16 << 20
_MAX_CALLS = 10_000  # at once on one connection
_MAX_BUFFERED = 8 << 20  # answers to pings and settings that a peer does not take
_PLAIN_HTTP = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\nThis port speaks gRPC.\n"
)


# A call's path and metadata in; a Refusal, or who the caller is, out. The handler finds the latter on its call.
Check = Callable[[str, Metadata], object]
Gate = Callable[[asyncio.Transport], Check]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What all connections of a server share. `gate` is asked once per connection for the check that every call of it
    must pass; `flush_soon` calls a connection's `flush` at the end of this turn of the loop."""

    methods: "Mapping[str, grpc.RpcMethodHandler[Any, Any]]"
    gate: Gate
    max_message: int
    closed: "Callable[[Connection], None]"
    flush_soon: "Callable[[Connection], None]"


class Connection(asyncio.Protocol):
    """Fulfils CallLink for its calls."""

    __slots__ = (
        "_announced",
        "_block",
        "_buffer",
        "_calls",
        "_check",
        "_draining",
        "_last_stream",
        "_outgoing",
        "_preface_due",
        "_reader",
        "_service",
        "_transport",
        "_uncredited",
        "blocked",
        "heard",
        "max_frame",
        "max_message",
        "paused",
        "peer_window",
        "pinged",
        "window",
    )

    def __init__(self, service: Service) -> None:
        self._service = service
        self._calls: dict[int, Call] = {}
        self._reader = HeaderReader()
        self._buffer = b""
        self._preface_due = True
        self._block: tuple[int, int, bytearray] | None = None  # stream, flags, what came: while CONTINUATION is due
        self._last_stream = 0
        self._uncredited = 0
        self._announced = False
        self._draining = False
        self._transport: asyncio.Transport | None = None
        self._check: Check
        self._outgoing: list[bytes] = []
        self.max_message = service.max_message
        self.window = DEFAULT_WINDOW
        self.peer_window = DEFAULT_WINDOW
        self.max_frame = MAX_FRAME_BYTES
        self.paused = False
        self.blocked: dict[int, Outbound] = {}
        self.heard = True  # since the server's keepalive looked last
        self.pinged = False

    # --- asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP gives no less
        self._transport = transport
        self._check = self._service.gate(transport)
        transport.set_write_buffer_limits(high=1 << 20)
        settings = b"".join(
            key.to_bytes(2, "big") + value.to_bytes(4, "big")
            for key, value in (
                (Setting.MAX_CONCURRENT_STREAMS, _MAX_CALLS),
                (Setting.INITIAL_WINDOW_SIZE, WINDOW),
                (Setting.MAX_HEADER_LIST_SIZE, MAX_BLOCK_BYTES),
            )
        )
        more = (_CONNECTION_WINDOW - DEFAULT_WINDOW).to_bytes(4, "big")
        self.write(build_frame(Kind.SETTINGS, 0, 0, settings) + build_frame(Kind.WINDOW_UPDATE, 0, 0, more))

    def connection_lost(self, exc: Exception | None) -> None:
        for call in list(self._calls.values()):
            call.cancel()
        self._calls.clear()
        self._service.closed(self)

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        self._unblock()

    def data_received(self, data: bytes) -> None:
        self.heard = True
        if self._buffer:
            data = self._buffer + data
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
        while size - at >= 9:
            high, low, kind, flags, stream = unpack(data, at)
            length = high << 8 | low
            if length > MAX_FRAME_BYTES:
                raise ConnectionFault(Fault.FRAME_SIZE_ERROR, f"a frame of {length:,} bytes")
            end = at + 9 + length
            if end > size:
                break
            stream &= LARGEST_WINDOW
            if kind == 0 and not flags & 0x8 and self._block is None:
                self._on_data(stream, flags, data, at + 9, end)
            else:
                self._on_frame(kind, flags, stream, data[at + 9 : end])
            at = end
        return at

    # --- frames

    def _on_data(self, stream: int, flags: int, data: bytes, start: int, end: int) -> None:
        self._uncredited += end - start
        if self._uncredited >= _CONNECTION_WINDOW // 2:
            self.credit(0, self._uncredited)
            self._uncredited = 0
        call = self._calls.get(stream)
        if call is None:
            if stream > self._last_stream or not stream & 1:
                raise ConnectionFault(Fault.PROTOCOL_ERROR, f"DATA on stream {stream}, which is not open")
            return  # it has ended on this side; the peer does not know yet
        if end > start:
            call.feed(data, start, end)
        if flags & 0x1:
            call.feed_end()

    def _on_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None and (kind != Kind.CONTINUATION or stream != self._block[0]):
            raise ConnectionFault(Fault.PROTOCOL_ERROR, "headers were interrupted by another frame")
        match kind:
            case Kind.DATA:
                body = strip_padding(flags & ~Flag.PRIORITY, payload)
                self._uncredited += len(payload) - len(body)
                self._on_data(stream, flags, body, 0, len(body))
            case Kind.HEADERS:
                self._on_headers(flags, stream, strip_padding(flags, payload))
            case Kind.CONTINUATION:
                self._on_continuation(flags, payload)
            case Kind.WINDOW_UPDATE:
                self._on_window(stream, int.from_bytes(payload, "big") & LARGEST_WINDOW)
            case Kind.PING if not flags & Flag.ACK:
                self._answer(build_frame(Kind.PING, Flag.ACK, 0, payload[:8]))
            case Kind.PING:
                self.pinged = False
            case Kind.SETTINGS if not flags & Flag.ACK:
                self._on_settings(payload)
            case Kind.RST_STREAM:
                call = self._calls.pop(stream, None)
                if call is not None:
                    call.cancel()
            case Kind.PUSH_PROMISE:
                raise ConnectionFault(Fault.PROTOCOL_ERROR, "a client cannot push")
            case _:
                pass  # PRIORITY, GOAWAY, SETTINGS' ack and what HTTP/2 may get one day ask for nothing

    def _on_headers(self, flags: int, stream: int, fragment: bytes) -> None:
        if flags & Flag.END_HEADERS:
            self._on_block(stream, flags, fragment)
        else:
            self._block = (stream, flags, bytearray(fragment))

    def _on_continuation(self, flags: int, fragment: bytes) -> None:
        if self._block is None:
            raise ConnectionFault(Fault.PROTOCOL_ERROR, "CONTINUATION of nothing")
        stream, first, block = self._block
        block += fragment
        if len(block) > MAX_BLOCK_BYTES or not fragment:
            raise ConnectionFault(Fault.ENHANCE_YOUR_CALM, "headers without end")
        if flags & Flag.END_HEADERS:
            self._block = None
            self._on_block(stream, first, bytes(block))

    def _on_block(self, stream: int, flags: int, block: bytes) -> None:
        head = self._reader.read(block)  # always: HPACK's table must see every block
        known = self._calls.get(stream)
        if known is not None:
            if flags & Flag.END_STREAM:
                known.feed_end()
            return
        if not stream & 1 or stream <= self._last_stream:
            raise ConnectionFault(Fault.PROTOCOL_ERROR, f"stream {stream} cannot be opened")
        self._last_stream = stream
        if self._draining or len(self._calls) >= _MAX_CALLS:
            self.reset(stream, Fault.REFUSED_STREAM)
        elif head.refusal is not None:
            self.write(self.headers(stream, build_refusal(head.refusal), end=True))
        elif isinstance(caller := self._check(head.path, head.metadata), Refusal):
            self._refuse(stream, caller)
        elif (handler := self._service.methods.get(head.path)) is None:
            self._refuse(stream, Refusal(grpc.StatusCode.UNIMPLEMENTED, f"there is no method {head.path}"))
        else:
            call = self._calls[stream] = Call(self, stream, head, handler, caller)
            if flags & Flag.END_STREAM:
                call.feed_end()

    def _refuse(self, stream: int, refusal: Refusal) -> None:
        trailers = build_trailers(refusal.code.value[0], refusal.details, refusal.metadata)
        self.write(self.headers(stream, RESPONSE_HEAD + trailers, end=True))
        self.reset(stream, Fault.NO_ERROR)

    def _on_window(self, stream: int, more: int) -> None:
        if not more:
            raise ConnectionFault(Fault.PROTOCOL_ERROR, "a window grows by nothing")
        if not stream:
            self.window += more
            if self.window > LARGEST_WINDOW:
                raise ConnectionFault(Fault.FLOW_CONTROL_ERROR, "a window beyond all measure")
            self._unblock()
        elif stream in self._calls:
            self._calls[stream].out.window += more
            self._unblock_one(stream)

    def _on_settings(self, payload: bytes) -> None:
        for key, value in parse_settings(payload):
            if key == Setting.INITIAL_WINDOW_SIZE:
                if value > LARGEST_WINDOW:
                    raise ConnectionFault(Fault.FLOW_CONTROL_ERROR, "a window beyond all measure")
                for call in self._calls.values():
                    call.out.window += value - self.peer_window
                self.peer_window = value
            elif key == Setting.MAX_FRAME_SIZE and value < MAX_FRAME_BYTES:
                raise ConnectionFault(Fault.PROTOCOL_ERROR, f"frames of {value} bytes are too small")
        self._answer(build_frame(Kind.SETTINGS, Flag.ACK, 0))
        self._unblock()

    # --- for calls

    def write(self, data: bytes) -> None:
        """All writes of one turn of the loop leave together, and those of all connections one right after the other: a
        peer that is woken for each write costs more than the write."""
        if not self._outgoing:
            self._service.flush_soon(self)
        self._outgoing.append(data)

    def flush(self) -> None:
        assert self._transport is not None
        outgoing, self._outgoing = self._outgoing, []
        if outgoing:
            self._transport.write(outgoing[0] if len(outgoing) == 1 else b"".join(outgoing))

    def headers(self, stream: int, block: bytes, *, end: bool) -> bytes:
        if not self._announced:
            self._announced = True
            block = NO_TABLE + block
        return build_headers(stream, block, end=end)

    def credit(self, stream: int, size: int) -> None:
        self.write(build_frame(Kind.WINDOW_UPDATE, 0, stream, size.to_bytes(4, "big")))

    def reset(self, stream: int, fault: Fault) -> None:
        self.write(build_frame(Kind.RST_STREAM, 0, stream, fault.to_bytes(4, "big")))

    def ended(self, stream: int) -> None:
        self._calls.pop(stream, None)
        if self._draining and not self._calls:
            self.close()

    def _unblock(self) -> None:
        for stream in list(self.blocked):
            self._unblock_one(stream)

    def _unblock_one(self, stream: int) -> None:
        out = self.blocked.get(stream)
        if out is not None and out.flush() and stream in self._calls:
            self._calls[stream].gone()

    def _answer(self, frame: bytes) -> None:
        assert self._transport is not None
        if self._transport.get_write_buffer_size() > _MAX_BUFFERED:
            raise ConnectionFault(Fault.ENHANCE_YOUR_CALM, "the peer asks and does not read")
        self.write(frame)

    # --- for the server

    @property
    def busy(self) -> bool:
        return bool(self._calls)

    def ping(self) -> None:
        self.pinged = True
        self.write(build_frame(Kind.PING, 0, 0, b"strata\0\0"))

    def drain(self) -> None:
        """No new calls; those that run may end."""
        self._draining = True
        self._goodbye(Fault.NO_ERROR, b"")

    def close(self) -> None:
        """After what has been written."""
        assert self._transport is not None
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """At once, without what has not been sent."""
        assert self._transport is not None
        self._transport.abort()

    def _fail(self, fault: ConnectionFault) -> None:
        _log.info("a connection ends: %s", fault)
        self._goodbye(fault.fault, str(fault).encode())
        self._draining = True
        self.close()

    def _goodbye(self, fault: Fault, why: bytes) -> None:
        payload = self._last_stream.to_bytes(4, "big") + fault.to_bytes(4, "big") + why
        self.write(build_frame(Kind.GOAWAY, 0, 0, payload))
