"""gRPC over HTTP/2 with as little client as possible: requests are ready-made bytes, answers are counted by their frame
headers. So that, on two cores, a measurement is of the server and not of its client. For ping-pong loads only: it
relies on the server to open its windows in time.
"""

import asyncio
import struct
from collections.abc import Callable

__all__ = ["PREFACE", "Connection", "connect_all", "data_frame", "frame_bytes", "header_block", "message_bytes"]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4
_LARGEST = 2**31 - 1


def frame_bytes(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def message_bytes(message: bytes) -> bytes:
    """A protobuf message as gRPC frames it."""
    return b"\0" + struct.pack(">I", len(message)) + message


def data_frame(stream: int, message: bytes, *, end: bool = False) -> bytes:
    return frame_bytes(_DATA, _END_STREAM if end else 0, stream, message_bytes(message))


def _text(value: str) -> bytes:
    """A string of HPACK, without Huffman; 127 bytes and more take a longer length."""
    raw = value.encode()
    if len(raw) < 127:
        return bytes([len(raw)]) + raw
    rest = len(raw) - 127
    assert rest < 128, value
    return bytes([127, rest]) + raw


def header_block(path: str, token: str = "") -> bytes:
    """Literals only, so that the block is the same for every request."""
    block = b"\x83\x86\x04" + _text(path) + b"\x01" + _text("localhost")
    headers = {"te": "trailers", "content-type": "application/grpc"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    for name, value in headers.items():
        block += b"\0" + _text(name) + _text(value)
    return block


class Connection(asyncio.Protocol):
    """One TCP connection. `on_message(connection, payload)` gets each answer, without gRPC's five bytes."""

    def __init__(self, on_message: Callable[["Connection", bytes], None]) -> None:
        self._on_message = on_message
        self._buffer = b""
        self._begun = b""  # a message of which more is to come
        self._next_stream = 1
        self.stream = 0
        self.number = 0
        self.ended: Callable[[], None] | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP gives no less
        self.transport = transport
        settings = struct.pack(">HI", 4, _LARGEST) + struct.pack(">HI", 2, 0)
        window = struct.pack(">I", _LARGEST - 65535)
        transport.write(PREFACE + frame_bytes(_SETTINGS, 0, 0, settings) + frame_bytes(_WINDOW, 0, 0, window))

    def open(self, block: bytes) -> None:
        """Starts a call; `stream` is the one that later sends belong to."""
        self.stream = self._next_stream
        self._next_stream += 2
        self.transport.write(frame_bytes(_HEADERS, _END_HEADERS, self.stream, block))

    def call(self, block: bytes, message: bytes) -> None:
        """A whole unary request in one write."""
        self.stream = self._next_stream
        self._next_stream += 2
        self.transport.write(
            frame_bytes(_HEADERS, _END_HEADERS, self.stream, block) + data_frame(self.stream, message, end=True)
        )

    def send(self, message: bytes) -> None:
        self.transport.write(data_frame(self.stream, message))

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer + data if self._buffer else data
        at, size = 0, len(buffer)
        while size - at >= 9:
            length = int.from_bytes(buffer[at : at + 3], "big")
            end = at + 9 + length
            if end > size:
                break
            kind, flags = buffer[at + 3], buffer[at + 4]
            if kind == _DATA:
                self._on_data(buffer[at + 9 : end])
            elif kind == _HEADERS:
                if flags & _END_STREAM and self.ended is not None:
                    self.ended()
            elif kind in (_SETTINGS, _PING) and not flags & _ACK:
                self.transport.write(frame_bytes(kind, _ACK, 0, b"" if kind == _SETTINGS else buffer[at + 9 : end]))
            elif kind in (_RESET, _GOAWAY):
                raise ConnectionError(f"the server ended it: {buffer[at:end]!r}")
            at = end
        self._buffer = buffer[at:]

    def _on_data(self, data: bytes) -> None:
        """A frame is a message, but for one that is longer than a frame may be."""
        data = self._begun + data if self._begun else data
        while len(data) >= 5 and (end := 5 + int.from_bytes(data[1:5], "big")) <= len(data):
            if end > 5:
                self._on_message(self, data[5:end])
            data = data[end:]
        self._begun = data


async def connect_all(address: str, number: int, on_message: Callable[[Connection, bytes], None]) -> list[Connection]:
    """So many real connections, a hundred at a time."""
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    connections: list[Connection] = []
    while len(connections) < number:
        batch = [
            loop.create_connection(lambda: Connection(on_message), host, int(port))
            for _ in range(min(100, number - len(connections)))
        ]
        connections += [protocol for _, protocol in await asyncio.gather(*batch)]
    for count, connection in enumerate(connections):
        connection.number = count
    return connections
