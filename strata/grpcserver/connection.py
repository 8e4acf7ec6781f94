"""One HTTP/2 connection: calls out of its frames, and the peer's rules for what is sent.

Whatever a peer sends, the worst that happens is the end of its own connection: see limits.py.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from strata.grpcserver.call import Call, Refusal
from strata.grpcserver.frames import (
    DEFAULT_WINDOW,
    LARGEST_WINDOW,
    MAX_FRAME_BYTES,
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
    NO_TABLE,
    RESPONSE_HEAD,
    HeaderReader,
    Metadata,
    build_refusal,
    build_trailers,
)
from strata.grpcserver.inbound import WINDOW
from strata.grpcserver.limits import (
    CHATTER,
    MAX_CALLS,
    MAX_HEADER_BYTES,
    REFUSAL,
    RESET,
    SETTINGS,
    Allowance,
    Complaints,
)
from strata.grpcserver.outbound import Outbound
from strata.grpcserver.wire import Turns, Wire

__all__ = ["Check", "Connection", "Gate", "Service"]

_CONNECTION_WINDOW = (
    16 << 20
)  # what all calls of a connection may have sent and nobody has read, unfinished messages aside
_SHOWN_PATH = 200


# A call's path and metadata in; a Refusal, or who the caller is, out. The handler finds the latter on its call.
Check = Callable[[str, Metadata], object]
Gate = Callable[[asyncio.Transport], Check]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What all connections of a server share. `gate` is asked once per connection for the check that every call of it
    must pass."""

    methods: "Mapping[str, grpc.RpcMethodHandler[Any, Any]]"
    gate: Gate
    max_message: int
    opened: "Callable[[Connection], None]"
    closed: "Callable[[Connection], None]"
    turns: Turns
    complaints: Complaints


class Connection(Wire):
    """Fulfils CallLink for its calls."""

    __slots__ = (
        "_allowance",
        "_announced",
        "_block",
        "_calls",
        "_check",
        "_draining",
        "_last_stream",
        "_listeners",
        "_reader",
        "_service",
        "_unconsumed",
        "blocked",
        "held",
        "max_frame",
        "max_message",
        "peer_window",
        "uncredited",
        "unread",
        "window",
    )

    def __init__(self, service: Service) -> None:
        super().__init__(service.turns)
        self._service = service
        self._calls: dict[int, Call] = {}
        self._reader = HeaderReader()
        self._allowance = Allowance()
        self._block: tuple[int, int, bytearray] | None = None  # stream, flags, what came: while CONTINUATION is due
        self._last_stream = 0
        self._listeners: list[Callable[[], None]] = []
        self._unconsumed = 0  # of the connection's window: what came and nobody has read
        self._announced = False
        self._draining = False
        self._check: Check
        self.max_message = service.max_message
        self.window = DEFAULT_WINDOW
        self.peer_window = DEFAULT_WINDOW
        self.max_frame = MAX_FRAME_BYTES
        self.blocked: dict[int, Outbound] = {}
        self.held = 0
        self.uncredited = 0
        self.unread = 0

    # --- asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP gives no less
        super().connection_made(transport)
        self._service.opened(self)
        self._check = self._service.gate(transport)
        settings = b"".join(
            key.to_bytes(2, "big") + value.to_bytes(4, "big")
            for key, value in (
                (Setting.MAX_CONCURRENT_STREAMS, MAX_CALLS),
                (Setting.INITIAL_WINDOW_SIZE, WINDOW),
                (Setting.MAX_HEADER_LIST_SIZE, MAX_HEADER_BYTES),
            )
        )
        more = (_CONNECTION_WINDOW - DEFAULT_WINDOW).to_bytes(4, "big")
        self.write(build_frame(Kind.SETTINGS, 0, 0, settings) + build_frame(Kind.WINDOW_UPDATE, 0, 0, more))

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._cancel_all()
        self._service.closed(self)
        for listener in self._listeners:
            listener()

    def when_lost(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def on_writable(self) -> None:
        self._unblock()

    # --- frames

    def on_data(self, stream: int, flags: int, data: bytes, start: int, end: int) -> None:
        if self._block is not None:
            raise ConnectionFault(Fault.PROTOCOL_ERROR, "headers were interrupted by another frame")
        size = end - start
        self._unconsumed += size
        if self._unconsumed + self.uncredited > _CONNECTION_WINDOW:
            raise ConnectionFault(Fault.FLOW_CONTROL_ERROR, "more was sent than the connection's window allows")
        call = self._calls.get(stream)
        if call is None:
            if stream > self._last_stream or not stream & 1:
                raise ConnectionFault(Fault.PROTOCOL_ERROR, f"DATA on stream {stream}, which is not open")
            self.consumed(size)  # it has ended on this side; the peer does not know yet
            return
        if size:
            call.feed(data, start, end)
        elif not flags & 0x1:
            self._allowance.spend(CHATTER, "frames that say nothing")
        if flags & 0x1:
            call.feed_end()

    def on_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None and (kind != Kind.CONTINUATION or stream != self._block[0]):
            raise ConnectionFault(Fault.PROTOCOL_ERROR, "headers were interrupted by another frame")
        match kind:
            case Kind.DATA:
                body = strip_padding(flags & ~Flag.PRIORITY, payload)
                self._unconsumed += len(payload) - len(body)
                self.consumed(len(payload) - len(body))
                self.on_data(stream, flags, body, 0, len(body))
            case Kind.HEADERS:
                self._on_headers(flags, stream, strip_padding(flags, payload))
            case Kind.CONTINUATION:
                self._on_continuation(flags, payload)
            case Kind.WINDOW_UPDATE:
                self._allowance.spend(CHATTER, "updates of windows")
                self._on_window(stream, int.from_bytes(payload[:4], "big") & LARGEST_WINDOW)
            case Kind.PING if not flags & Flag.ACK:
                self._allowance.spend(CHATTER, "pings")
                self.write(build_frame(Kind.PING, Flag.ACK, 0, payload[:8]))
            case Kind.SETTINGS if not flags & Flag.ACK:
                self._allowance.spend(SETTINGS, "changes of settings")
                self._on_settings(payload)
            case Kind.RST_STREAM:
                self._allowance.spend(RESET, "calls that were reset")
                call = self._calls.pop(stream, None)
                if call is not None:
                    call.cancel()
            case Kind.PUSH_PROMISE:
                raise ConnectionFault(Fault.PROTOCOL_ERROR, "a client cannot push")
            case _:  # PRIORITY, GOAWAY, acknowledgements and what HTTP/2 may get one day ask for nothing
                self._allowance.spend(CHATTER, "frames that say nothing")

    def _on_headers(self, flags: int, stream: int, fragment: bytes) -> None:
        if flags & Flag.END_HEADERS:
            self._on_block(stream, flags, fragment)
        else:
            self._block = (stream, flags, bytearray(fragment))
            self.ear = None  # no message may come now, and to look for that each time is dear

    def _on_continuation(self, flags: int, fragment: bytes) -> None:
        if self._block is None:
            raise ConnectionFault(Fault.PROTOCOL_ERROR, "CONTINUATION of nothing")
        stream, first, block = self._block
        block += fragment
        if len(block) > MAX_HEADER_BYTES or not fragment:
            raise ConnectionFault(Fault.ENHANCE_YOUR_CALM, "headers without end")
        if flags & Flag.END_HEADERS:
            self._block = None
            self._on_block(stream, first, bytes(block))

    def _on_block(self, stream: int, flags: int, block: bytes) -> None:
        head = self._reader.read(block)  # always: HPACK's table must see every block
        known = self._calls.get(stream)
        if known is not None:
            self._allowance.spend(CHATTER, "trailers")
            if flags & Flag.END_STREAM:
                known.feed_end()
            return
        if not stream & 1 or stream <= self._last_stream:
            raise ConnectionFault(Fault.PROTOCOL_ERROR, f"stream {stream} cannot be opened")
        self._last_stream = stream
        if self._draining or len(self._calls) >= MAX_CALLS:
            self._count_refusal("a call too many", f"{len(self._calls)} calls are open")
            self.reset(stream, Fault.REFUSED_STREAM)
        elif head.refusal is not None:
            self._count_refusal("no gRPC call", f"HTTP status {head.refusal}")
            self.write(self.headers(stream, build_refusal(head.refusal), end=True))
        elif isinstance(caller := self._check(head.path, head.metadata), Refusal):
            self._refuse(stream, caller)
        elif (handler := self._service.methods.get(head.path)) is None:
            path = head.path[:_SHOWN_PATH]
            self._refuse(stream, Refusal(grpc.StatusCode.UNIMPLEMENTED, f"there is no method {path}"))
        else:
            call = self._calls[stream] = Call(self, stream, head, handler, caller)
            if flags & Flag.END_STREAM:
                call.feed_end()

    def _refuse(self, stream: int, refusal: Refusal) -> None:
        self._count_refusal("a refused call", f"{refusal.code.name}: {refusal.details}")
        trailers = build_trailers(refusal.code.value[0], refusal.details, refusal.metadata)
        self.write(self.headers(stream, RESPONSE_HEAD + trailers, end=True))
        self.reset(stream, Fault.NO_ERROR)

    def _count_refusal(self, reason: str, sentence: str) -> None:
        self._service.complaints.add(reason, self._peer, sentence)
        self._allowance.spend(REFUSAL, "calls that were refused")

    def _on_window(self, stream: int, more: int) -> None:
        if not more:
            raise ConnectionFault(Fault.PROTOCOL_ERROR, "a window grows by nothing")
        if not stream:
            self.window += more
            if self.window > LARGEST_WINDOW:
                raise ConnectionFault(Fault.FLOW_CONTROL_ERROR, "a window beyond all measure")
            self._unblock()
        elif (call := self._calls.get(stream)) is not None:
            self._widen(call, more)

    def _on_settings(self, payload: bytes) -> None:
        window = self.peer_window
        for key, value in parse_settings(payload):
            if key == Setting.INITIAL_WINDOW_SIZE:
                if value > LARGEST_WINDOW:
                    raise ConnectionFault(Fault.FLOW_CONTROL_ERROR, "a window beyond all measure")
                window = value  # the last one counts
            elif key == Setting.MAX_FRAME_SIZE and value < MAX_FRAME_BYTES:
                raise ConnectionFault(Fault.PROTOCOL_ERROR, f"frames of {value} bytes are too small")
        more, self.peer_window = window - self.peer_window, window
        self.write(build_frame(Kind.SETTINGS, Flag.ACK, 0))
        if more:
            for call in list(self._calls.values()):
                self._widen(call, more)

    def _widen(self, call: Call, more: int) -> None:
        call.out.window += more
        if call.out.window > LARGEST_WINDOW:
            raise ConnectionFault(Fault.FLOW_CONTROL_ERROR, "a window beyond all measure")
        if more > 0 and call.out.flush():
            call.gone()

    # --- for calls

    def headers(self, stream: int, block: bytes, *, end: bool) -> bytes:
        if not self._announced:
            self._announced = True
            block = NO_TABLE + block
        return build_headers(stream, block, end=end)

    def credit(self, stream: int, size: int) -> None:
        self.write(build_frame(Kind.WINDOW_UPDATE, 0, stream, size.to_bytes(4, "big")))

    def too_slow(self, stream: int, sentence: str) -> None:
        self._calls[stream].end(grpc.StatusCode.RESOURCE_EXHAUSTED, sentence)

    def reset(self, stream: int, fault: Fault) -> None:
        self.write(build_frame(Kind.RST_STREAM, 0, stream, fault.to_bytes(4, "big")))

    def ended(self, stream: int) -> None:
        self._calls.pop(stream, None)
        if self._draining and not self._calls:
            self.close()

    def consumed(self, size: int) -> None:
        """Credits bytes to the peer: they were read, or never will be."""
        self._unconsumed -= size
        self.uncredited += size
        if self.uncredited >= _CONNECTION_WINDOW // 2:
            self.credit(0, self.uncredited)
            self.uncredited = 0

    def _unblock(self) -> None:
        """Lets streams that wait for the connection's window go on, in order, until the window is used up."""
        while self.blocked and self.window > 0 and not self.paused:
            stream, out = next(iter(self.blocked.items()))
            if out.flush():
                self._calls[stream].gone()

    # --- for the server

    @property
    def busy(self) -> bool:
        return bool(self._calls)

    @property
    def unused(self) -> bool:
        """Whether it never made a call."""
        return not self._last_stream

    def drain(self) -> None:
        """No new calls; those that run may end."""
        self._draining = True
        self._goodbye(Fault.NO_ERROR, b"")

    def on_fault(self, fault: ConnectionFault) -> None:
        self._service.complaints.add(fault.fault.name, self._peer, f"its connection ends: {fault}")
        self._goodbye(fault.fault, str(fault).encode())
        self._draining = True
        self._cancel_all()

    def _cancel_all(self) -> None:
        for call in list(self._calls.values()):
            call.cancel()
        self._calls.clear()

    def _peer(self) -> object:
        return self._transport.get_extra_info("peername")

    def _goodbye(self, fault: Fault, why: bytes) -> None:
        payload = self._last_stream.to_bytes(4, "big") + fault.to_bytes(4, "big") + why
        self.write(build_frame(Kind.GOAWAY, 0, 0, payload))
