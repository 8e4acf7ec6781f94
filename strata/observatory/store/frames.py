"""Frames between the observatory and its store process: a JSON header and a payload in the Native format. No pickle."""

import asyncio
import socket
import struct
from typing import Any

import orjson

__all__ = ["pack", "read_frame", "recv_frame"]

_SIZES = struct.Struct("<IQ")
_MAX_HEADER = 16 << 20
_MAX_PAYLOAD = 4 << 30


def pack(header: dict[str, Any], payload: bytes = b"") -> list[bytes]:
    """The pieces of one frame, to be written in order without copying the payload."""
    head = orjson.dumps(header)
    return [_SIZES.pack(len(head), len(payload)) + head, payload]


async def read_frame(reader: asyncio.StreamReader) -> tuple[dict[str, Any], bytes]:
    """Raises IncompleteReadError when the other side is gone."""
    head_size, payload_size = _checked(await reader.readexactly(_SIZES.size))
    header: dict[str, Any] = orjson.loads(await reader.readexactly(head_size))
    return header, await reader.readexactly(payload_size)


def recv_frame(sock: socket.socket) -> tuple[dict[str, Any], bytearray] | None:
    """The blocking twin for the child; None when the parent is gone."""
    sizes = _recv_exactly(sock, _SIZES.size)
    if sizes is None:
        return None
    head_size, payload_size = _checked(sizes)
    head, payload = _recv_exactly(sock, head_size), _recv_exactly(sock, payload_size)
    if head is None or payload is None:
        return None
    return orjson.loads(head), payload


def _checked(sizes: bytes | bytearray) -> tuple[int, int]:
    head, payload = _SIZES.unpack(sizes)
    if head > _MAX_HEADER or payload > _MAX_PAYLOAD:
        raise ValueError(f"frame of {head} + {payload} bytes: the stream is out of step")
    return head, payload


def _recv_exactly(sock: socket.socket, size: int) -> bytearray | None:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        try:
            received = sock.recv_into(view)
        except ConnectionResetError:  # a parent that was killed with our answers unread
            return None
        if received == 0:
            return None
        view = view[received:]
    return data
