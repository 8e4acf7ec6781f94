"""HTTP/2 frames (RFC 9113) as bytes: what they are called, how they are built, and what a peer may not send."""

import struct
from collections.abc import Iterator
from enum import IntEnum

__all__ = [
    "DEFAULT_WINDOW",
    "FRAME_HEADER",
    "LARGEST_WINDOW",
    "MAX_FRAME_BYTES",
    "MESSAGE_HEADER",
    "PREFACE",
    "PREFIX",
    "ConnectionFault",
    "Fault",
    "Flag",
    "Kind",
    "Setting",
    "build_frame",
    "build_headers",
    "parse_settings",
    "strip_padding",
]

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_HEADER = struct.Struct(">HBBBI")  # length (24 bits as two fields), kind, flags, stream
PREFIX = struct.Struct(">BI")  # of a message: compressed or not, its length
MESSAGE_HEADER = struct.Struct(FRAME_HEADER.format + PREFIX.format[1:])  # of a frame that is one message
MAX_FRAME_BYTES = 16_384  # what both sides may send unless the other allows more; we never do
DEFAULT_WINDOW = 65_535
LARGEST_WINDOW = 2**31 - 1

_SETTING = struct.Struct(">HI")


class Kind(IntEnum):
    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Flag(IntEnum):
    END_STREAM = 0x1
    ACK = 0x1
    END_HEADERS = 0x4
    PADDED = 0x8
    PRIORITY = 0x20


class Setting(IntEnum):
    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class Fault(IntEnum):
    """Why a stream or a connection ended, in HTTP/2's numbers."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class ConnectionFault(Exception):
    """The peer broke the protocol in a way that only the end of the connection answers."""

    def __init__(self, fault: Fault, message: str) -> None:
        super().__init__(message)
        self.fault = fault


def build_frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    size = len(payload)
    return FRAME_HEADER.pack(size >> 8, size & 0xFF, kind, flags, stream) + payload


def build_headers(stream: int, block: bytes, *, end: bool) -> bytes:
    """A header block as one HEADERS frame, and CONTINUATION frames when it is long."""
    flags = Flag.END_STREAM if end else 0
    if len(block) <= MAX_FRAME_BYTES:
        return build_frame(Kind.HEADERS, flags | Flag.END_HEADERS, stream, block)
    parts = [block[at : at + MAX_FRAME_BYTES] for at in range(0, len(block), MAX_FRAME_BYTES)]
    frames = [build_frame(Kind.HEADERS, flags, stream, parts[0])]
    frames += [build_frame(Kind.CONTINUATION, 0, stream, part) for part in parts[1:-1]]
    return b"".join(frames) + build_frame(Kind.CONTINUATION, Flag.END_HEADERS, stream, parts[-1])


def parse_settings(payload: bytes) -> Iterator[tuple[int, int]]:
    if len(payload) % _SETTING.size:
        raise ConnectionFault(Fault.FRAME_SIZE_ERROR, "a SETTINGS frame of a broken length")
    return _SETTING.iter_unpack(payload)


def strip_padding(flags: int, payload: bytes) -> bytes:
    """The payload of a HEADERS or DATA frame without what may surround it."""
    start, end = 0, len(payload)
    if flags & Flag.PADDED:
        if not payload:
            raise ConnectionFault(Fault.FRAME_SIZE_ERROR, "a padded frame without its padding's length")
        start, end = 1, end - payload[0]
    if flags & Flag.PRIORITY:
        start += 5
    if start > end:
        raise ConnectionFault(Fault.PROTOCOL_ERROR, "a frame with more padding than payload")
    return payload[start:end]
