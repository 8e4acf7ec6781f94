"""A gRPC peer that no library would be: raw frames on a socket, read only when a test wants it."""

import select
import socket
import time
from collections.abc import Iterable

from hpack.hpack import encode_integer

from strata.grpcserver.frames import FRAME_HEADER, PREFACE, Fault, Flag, Kind, build_frame

__all__ = ["PING", "HostilePeer", "data", "head", "headers", "literal", "reset", "setting", "window"]

PING = build_frame(Kind.PING, 0, 0, b"12345678")


def literal(name: bytes, value: bytes) -> bytes:
    """A field of HPACK that leaves no trace in its table."""
    return b"\x00" + bytes(encode_integer(len(name), 7)) + name + bytes(encode_integer(len(value), 7)) + value


def head(path: str) -> bytes:
    """A call's header block, without HPACK's table."""
    fields = literal(b":path", path.encode()) + literal(b"content-type", b"application/grpc")
    return b"\x83\x86" + fields + literal(b"te", b"trailers")


def headers(stream: int, block: bytes, *, end: bool = False) -> bytes:
    return build_frame(Kind.HEADERS, Flag.END_HEADERS | (Flag.END_STREAM if end else 0), stream, block)


def data(stream: int, payload: bytes, *, end: bool = False) -> bytes:
    return build_frame(Kind.DATA, Flag.END_STREAM if end else 0, stream, payload)


def reset(stream: int) -> bytes:
    return build_frame(Kind.RST_STREAM, 0, stream, Fault.CANCEL.to_bytes(4, "big"))


def window(stream: int, more: int) -> bytes:
    return build_frame(Kind.WINDOW_UPDATE, 0, stream, more.to_bytes(4, "big"))


def setting(key: int, value: int) -> bytes:
    return key.to_bytes(2, "big") + value.to_bytes(4, "big")


class HostilePeer:
    """One connection. A context manager."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        self._socket.setblocking(False)
        self._received = b""

    def __enter__(self) -> "HostilePeer":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def greet(self) -> None:
        self.send([PREFACE + build_frame(Kind.SETTINGS, 0, 0)])

    def send(self, pieces: Iterable[bytes], *, read: bool = False, within_s: float = 4.0) -> str:
        """How it went: `sent`, `cut` when the server ended the connection, `stuck` when it took no more in time."""
        deadline = time.monotonic() + within_s
        for piece in pieces:
            left = memoryview(piece)
            while left:
                if time.monotonic() > deadline:
                    return "stuck"
                try:
                    left = left[self._socket.send(left) :]
                except BlockingIOError:
                    self._wait(read=read)
                except ConnectionError:
                    return "cut"
        return "sent"

    def _wait(self, *, read: bool) -> None:
        readable, _, _ = select.select([self._socket] if read else [], [self._socket], [], 0.05)
        if readable:
            self._received += self._socket.recv(1 << 20)

    def frames(self, *, until: Kind, within_s: float = 60.0) -> list[tuple[int, int, int, bytes]]:
        """Everything that comes up to the first frame of this kind: kind, flags, stream, payload."""
        found: list[tuple[int, int, int, bytes]] = []
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            at = 0
            while len(self._received) >= at + FRAME_HEADER.size:
                high, low, kind, flags, stream = FRAME_HEADER.unpack_from(self._received, at)
                begin = at + FRAME_HEADER.size
                end = begin + (high << 8 | low)
                if len(self._received) < end:
                    break
                found.append((kind, flags, stream, self._received[begin:end]))
                at = end
                if kind == until:
                    break
            self._received = self._received[at:]
            if found and found[-1][0] == until:
                return found
            if select.select([self._socket], [], [], 0.05)[0]:
                more = self._socket.recv(1 << 20)
                if not more:
                    raise AssertionError(f"the connection ended without {until.name}: {found[-3:]}")
                self._received += more
        raise AssertionError(f"no {until.name} came within {within_s:g} s")
