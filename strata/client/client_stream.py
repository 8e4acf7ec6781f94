"""A bidirectional call from the caller's side: one connection with one stream, its messages as bytes, on the caller's
own event loop. Stock grpcio would cross to a thread of its own for every message (docs/adr/0016).
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

import grpc

from strata.grpcserver.frames import (
    DEFAULT_WINDOW,
    LARGEST_WINDOW,
    MAX_FRAME_BYTES,
    PREFACE,
    ConnectionFault,
    Flag,
    Kind,
    Setting,
    build_frame,
    build_headers,
    parse_settings,
    strip_padding,
)
from strata.grpcserver.headers import TrailerReader, build_request
from strata.grpcserver.inbound import WINDOW, Inbound, Unreadable
from strata.grpcserver.outbound import Outbound
from strata.grpcserver.wire import Turns, Wire

__all__ = ["ClientStream", "StreamEnd"]

_STREAM = 1
_CODES = {code.value[0]: code for code in grpc.StatusCode}


class StreamEnd(grpc.RpcError):
    """How a call ended, under the names that grpcio's own errors have."""

    def __init__(self, code: grpc.StatusCode, details: str, metadata: dict[str, str | bytes] | None = None) -> None:
        super().__init__(details)
        self._code = code
        self._details = details
        self._metadata = metadata or {}

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> tuple[tuple[str, str | bytes], ...]:  # type: ignore[override]  # the same to a reader
        return tuple(self._metadata.items())


class ClientStream(Wire):
    """`on_message` gets each message as it comes. `ended` is done when no more can come, with how it ended."""

    __slots__ = (
        "_block",
        "_in",
        "_on_message",
        "_out",
        "_peer_window",
        "_trailers",
        "blocked",
        "ended",
        "heard_at",
        "held",
        "max_frame",
        "max_message",
        "uncredited",
        "unread",
        "window",
    )

    def __init__(
        self,
        path: str,
        metadata: Iterable[tuple[str, str]],
        on_message: Callable[[bytes], None],
        turns: Turns | None = None,
    ) -> None:
        super().__init__(turns or Turns())
        self._preface_due = False
        self._trailers = TrailerReader()
        self._block: bytearray | None = None
        self._peer_window = DEFAULT_WINDOW
        self._on_message = on_message
        self.uncredited = 0
        self.window = DEFAULT_WINDOW
        self.max_frame = MAX_FRAME_BYTES
        self.max_message = 4 << 20
        self.blocked: dict[int, Outbound] = {}
        self.held = 0
        self.unread = 0
        self.heard_at = time.monotonic()
        self.ended: asyncio.Future[StreamEnd] = asyncio.get_running_loop().create_future()
        self._out = Outbound(self, _STREAM, DEFAULT_WINDOW, build_request(path, "strata", metadata))
        self._in = Inbound(self, _STREAM, bytes, "identity")
        self._in.listen(self._hear, self._failed)
        self.ear = self._in

    # --- for the caller

    def send(self, message: bytes) -> None:
        """One message. A server that does not read is given up."""
        self._out.send(message)

    def finish(self) -> None:
        """Says that no more comes."""
        self.write(build_frame(Kind.DATA, Flag.END_STREAM, _STREAM))

    async def leave(self, timeout_s: float) -> None:
        """Says so, and waits until the server has taken everything, but not for ever."""
        if not self.ended.done():
            self.finish()
            await asyncio.wait([self.ended], timeout=timeout_s)
        self.abort()

    def fileno(self) -> int:
        """Of its socket; for a forked child, which must close its copy."""
        opened: Any = self._transport.get_extra_info("socket")
        return int(opened.fileno())

    # --- asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a stream gives no less
        super().connection_made(transport)
        settings = b"".join(
            key.to_bytes(2, "big") + value.to_bytes(4, "big")
            for key, value in ((Setting.ENABLE_PUSH, 0), (Setting.INITIAL_WINDOW_SIZE, WINDOW))
        )
        more = (WINDOW - DEFAULT_WINDOW).to_bytes(4, "big")
        self.write(PREFACE + build_frame(Kind.SETTINGS, 0, 0, settings) + build_frame(Kind.WINDOW_UPDATE, 0, 0, more))

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._finish(grpc.StatusCode.UNAVAILABLE, str(exc or "the connection ended"))

    def on_writable(self) -> None:
        self._out.flush()

    # --- frames

    def on_data(self, stream: int, flags: int, data: bytes, start: int, end: int) -> None:
        self.heard_at = time.monotonic()
        if stream != _STREAM or self.ended.done():
            self.consumed(end - start)
            return
        try:
            if end > start:
                self._in.feed(data, start, end)
        except Unreadable as error:
            self._finish(error.code, error.details)
            self.abort()

    def _hear(self, payload: bytes) -> None:
        self.heard_at = time.monotonic()
        if not self.ended.done():
            self._on_message(payload)

    def _failed(self, error: Exception) -> None:
        raise error

    def on_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        match kind:
            case Kind.DATA:
                body = strip_padding(flags & ~Flag.PRIORITY, payload)
                self.consumed(len(payload) - len(body))
                self.on_data(stream, flags, body, 0, len(body))
            case Kind.HEADERS:
                self._block = bytearray(strip_padding(flags, payload))
                self._on_block(flags, ends=bool(flags & Flag.END_STREAM))
            case Kind.CONTINUATION if self._block is not None:
                self._block += payload
                self._on_block(flags, ends=True)
            case Kind.WINDOW_UPDATE:
                self._on_window(stream, int.from_bytes(payload[:4], "big") & LARGEST_WINDOW)
            case Kind.PING if not flags & Flag.ACK:
                self.write(build_frame(Kind.PING, Flag.ACK, 0, payload[:8]))
            case Kind.SETTINGS if not flags & Flag.ACK:
                self._on_settings(payload)
            case Kind.RST_STREAM:
                self._finish(grpc.StatusCode.UNAVAILABLE, "the server reset the call")
            case Kind.GOAWAY:
                self._finish(grpc.StatusCode.UNAVAILABLE, "the server goes away")
            case _:  # acknowledgements, priorities, and what HTTP/2 may get one day ask for nothing
                pass

    def _on_block(self, flags: int, *, ends: bool) -> None:
        """Only trailers say something. Headers of several frames are trailers: the first ones of gRPC fit into one."""
        if not flags & Flag.END_HEADERS:
            return
        assert self._block is not None
        fields = self._trailers.read(bytes(self._block))
        self._block = None
        if ends or "grpc-status" in fields:
            code = _CODES.get(int(fields.get("grpc-status", 2)), grpc.StatusCode.UNKNOWN)
            self._finish(code, str(fields.pop("grpc-message")), fields)

    def _on_window(self, stream: int, more: int) -> None:
        if stream:
            self._out.window += more
        else:
            self.window += more
        self._out.flush()

    def _on_settings(self, payload: bytes) -> None:
        for key, value in parse_settings(payload):
            if key == Setting.INITIAL_WINDOW_SIZE:
                self._out.window += value - self._peer_window
                self._peer_window = value
        self.write(build_frame(Kind.SETTINGS, Flag.ACK, 0))
        self._out.flush()

    def on_fault(self, fault: ConnectionFault) -> None:
        self._finish(grpc.StatusCode.INTERNAL, f"the server broke HTTP/2: {fault}")

    def _finish(self, code: grpc.StatusCode, details: str, metadata: dict[str, str | bytes] | None = None) -> None:
        self._out.drop()
        if not self.ended.done():
            self.ended.set_result(StreamEnd(code, details, metadata))

    # --- for both halves

    def write(self, data: bytes) -> None:
        """At once, not at the end of a turn: there is one stream, what is said is whole, and others wait for it."""
        if not self._ended:
            self._transport.write(data)

    def too_slow(self, stream: int, sentence: str) -> None:
        self._finish(grpc.StatusCode.RESOURCE_EXHAUSTED, sentence)
        self.abort()

    def headers(self, stream: int, block: bytes, *, end: bool) -> bytes:
        return build_headers(stream, block, end=end)

    def credit(self, stream: int, size: int) -> None:
        self.write(build_frame(Kind.WINDOW_UPDATE, 0, stream, size.to_bytes(4, "big")))

    def consumed(self, size: int) -> None:
        self.uncredited += size
        if self.uncredited >= WINDOW // 2:
            self.credit(0, self.uncredited)
            self.uncredited = 0
