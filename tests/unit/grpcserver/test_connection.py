"""The connection under peers that grpcio would never be: by hand-made frames and by noise."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote_to_bytes

import grpc
import pytest
from hpack import Encoder

from strata.grpcserver import outbound
from strata.grpcserver.frames import (
    DEFAULT_WINDOW,
    FRAME_HEADER,
    PREFACE,
    Fault,
    Flag,
    Kind,
    Setting,
    build_frame,
)
from tests.unit.grpcserver.conftest import Desk


def head(method: str = "Echo") -> bytes:
    fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", f"/t.T/{method}"),
        ("content-type", "application/grpc"),
    ]
    encoder = Encoder()
    encoder.header_table_size = 0
    return encoder.encode(fields)


def message(payload: bytes) -> bytes:
    return b"\0" + len(payload).to_bytes(4, "big") + payload


def setting(key: Setting, value: int) -> bytes:
    return build_frame(Kind.SETTINGS, 0, 0, key.to_bytes(2, "big") + value.to_bytes(4, "big"))


class Peer:
    """A raw socket that reads frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        writer.write(PREFACE + build_frame(Kind.SETTINGS, 0, 0))

    def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    async def frame(self) -> tuple[int, int, int, bytes]:
        high, low, kind, flags, stream = FRAME_HEADER.unpack(await self.reader.readexactly(9))
        return kind, flags, stream, await self.reader.readexactly(high << 8 | low)

    async def until(self, kind: Kind) -> tuple[int, int, bytes]:
        """The next frame of this kind."""
        async with asyncio.timeout(60):
            while True:
                found, flags, stream, payload = await self.frame()
                if found == kind and not (kind in (Kind.SETTINGS, Kind.PING) and not flags & Flag.ACK):
                    return flags, stream, payload

    async def fault(self) -> tuple[Fault, str]:
        """How the server said goodbye; the connection is closed behind it."""
        _, _, payload = await self.until(Kind.GOAWAY)
        async with asyncio.timeout(60):
            await self.reader.read()
        return Fault(int.from_bytes(payload[4:8], "big")), payload[8:].decode()


@pytest.fixture
async def peer(desk: Desk) -> AsyncIterator[Peer]:
    reader, writer = await asyncio.open_connection("127.0.0.1", desk.port)
    yield Peer(reader, writer)
    writer.close()


async def test_headers_in_pieces_and_padding_and_priority(peer: Peer) -> None:
    block = head()
    padded = bytes([3]) + b"\0\0\0\0\7" + block[:10] + b"\0\0\0"
    body = bytes([2]) + message(b"hi") + b"\0\0"
    peer.send(
        build_frame(Kind.HEADERS, Flag.PADDED | Flag.PRIORITY, 1, padded),
        build_frame(Kind.CONTINUATION, 0, 1, block[10:20]),
        build_frame(Kind.CONTINUATION, Flag.END_HEADERS, 1, block[20:]),
        build_frame(Kind.PRIORITY, 0, 1, b"\0\0\0\0\1"),
        build_frame(0xEE, 0, 1, b"of another century"),
        build_frame(Kind.DATA, Flag.PADDED | Flag.END_STREAM, 1, body),
    )
    _, stream, payload = await peer.until(Kind.DATA)
    assert (stream, payload) == (1, message(b"hi"))


async def test_a_message_byte_by_byte(peer: Peer) -> None:
    peer.send(build_frame(Kind.HEADERS, Flag.END_HEADERS, 1, head("Listen")))
    for byte in message(b"slow"):
        peer.send(build_frame(Kind.DATA, 0, 1, bytes([byte])))
        await peer.writer.drain()
    assert (await peer.until(Kind.DATA))[2] == message(b"slow")


async def test_no_byte_is_sent_beyond_the_peers_windows(peer: Peer) -> None:
    peer.send(setting(Setting.INITIAL_WINDOW_SIZE, 7))
    await peer.until(Kind.SETTINGS)
    peer.send(
        build_frame(Kind.HEADERS, Flag.END_HEADERS, 1, head()),
        build_frame(Kind.DATA, Flag.END_STREAM, 1, message(b"0123456789")),
    )
    assert (await peer.until(Kind.DATA))[2] == message(b"0123456789")[:7]
    peer.send(build_frame(Kind.WINDOW_UPDATE, 0, 1, (3).to_bytes(4, "big")))
    assert (await peer.until(Kind.DATA))[2] == b"234"
    peer.send(setting(Setting.INITIAL_WINDOW_SIZE, 1000))
    assert (await peer.until(Kind.DATA))[2] == b"56789"
    flags, stream, _ = await peer.until(Kind.HEADERS)
    assert (stream, flags & Flag.END_STREAM) == (1, Flag.END_STREAM)


async def test_the_connections_window_counts_all_streams(peer: Peer) -> None:
    """Echoes of 60,000 bytes on two streams: the second waits for the connection's window."""
    peer.send(setting(Setting.INITIAL_WINDOW_SIZE, 1 << 20))
    for stream in (1, 3):
        peer.send(build_frame(Kind.HEADERS, Flag.END_HEADERS, stream, head()))
        body = message(b"z" * 60_000)
        peer.send(*[build_frame(Kind.DATA, 0, stream, body[at : at + 16_000]) for at in range(0, len(body), 16_000)])
        peer.send(build_frame(Kind.DATA, Flag.END_STREAM, stream))
    received = 0
    while received < DEFAULT_WINDOW:
        received += len((await peer.until(Kind.DATA))[2])
    assert received == DEFAULT_WINDOW
    peer.send(build_frame(Kind.WINDOW_UPDATE, 0, 0, (1 << 20).to_bytes(4, "big")))
    while received < 2 * 60_005:
        received += len((await peer.until(Kind.DATA))[2])
    assert received == 2 * 60_005


async def test_a_peer_that_asks_and_never_reads_loses_its_call_and_no_other(
    peer: Peer, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is held for it is bounded. When it reads after all, it gets what was held, and is told why no more comes."""
    monkeypatch.setattr(outbound, "MAX_HELD_BYTES", 3 * DEFAULT_WINDOW)
    peer.send(build_frame(Kind.HEADERS, Flag.END_HEADERS, 1, head("Listen")))
    async with asyncio.timeout(60):
        while not desk.cancelled.is_set():
            peer.send(build_frame(Kind.DATA, 0, 1, message(b"z" * 16_000)))
            await peer.writer.drain()
            await asyncio.sleep(0)
    held = (len(desk.heard) - 1) * len(message(b"z" * 16_000))
    assert 4 * DEFAULT_WINDOW < held < 5 * DEFAULT_WINDOW
    peer.send(build_frame(Kind.HEADERS, Flag.END_HEADERS, 3, head()))
    peer.send(build_frame(Kind.DATA, Flag.END_STREAM, 3, message(b"another")))
    peer.send(*[build_frame(Kind.WINDOW_UPDATE, 0, stream, (1 << 20).to_bytes(4, "big")) for stream in (0, 1)])
    received = {1: b"", 3: b""}
    ended: dict[int, bytes] = {}
    async with asyncio.timeout(60):
        while len(ended) < 2:
            kind, flags, stream, payload = await peer.frame()
            if kind == Kind.DATA:
                received[stream] += payload
            elif kind == Kind.HEADERS and flags & Flag.END_STREAM:
                ended[stream] = payload
    assert len(received[1]) == held
    assert received[3] == message(b"another")
    assert b"bytes wait for a peer that does not read" in unquote_to_bytes(ended[1])


async def test_nothing_is_heard_after_a_listener_failed(peer: Peer, desk: Desk) -> None:
    sent = [build_frame(Kind.DATA, 0, 1, message(text)) for text in (b"one", b"fail", b"late")]
    peer.send(build_frame(Kind.HEADERS, Flag.END_HEADERS, 1, head("Listen")), *sent)
    assert (await peer.until(Kind.DATA))[2] == message(b"one")
    _, _, trailers = await peer.until(Kind.HEADERS)
    assert b"as asked" in trailers
    assert desk.heard == [b"one"]


async def test_a_ping_is_answered_with_its_own_bytes(peer: Peer) -> None:
    peer.send(build_frame(Kind.PING, 0, 0, b"12345678"))
    assert (await peer.until(Kind.PING))[2] == b"12345678"


@pytest.mark.parametrize(
    ("frames", "fault", "words"),
    [
        (build_frame(Kind.DATA, 0, 1, b"x"), Fault.PROTOCOL_ERROR, "DATA on stream 1, which is not open"),
        (build_frame(Kind.HEADERS, Flag.END_HEADERS, 2, head()), Fault.PROTOCOL_ERROR, "stream 2 cannot be opened"),
        (build_frame(Kind.HEADERS, Flag.END_HEADERS, 1, b"\xff" * 9), Fault.COMPRESSION_ERROR, "cannot be decoded"),
        (build_frame(Kind.CONTINUATION, 0, 1, b"x"), Fault.PROTOCOL_ERROR, "CONTINUATION of nothing"),
        (
            build_frame(Kind.HEADERS, 0, 1, head()) + build_frame(Kind.PING, 0, 0, bytes(8)),
            Fault.PROTOCOL_ERROR,
            "interrupted",
        ),
        (
            build_frame(Kind.HEADERS, 0, 1, head()) + build_frame(Kind.CONTINUATION, 0, 1, bytes(16_000)) * 5,
            Fault.ENHANCE_YOUR_CALM,
            "headers without end",
        ),
        (b"\xff\xff\xff" + bytes(6), Fault.FRAME_SIZE_ERROR, "16,777,215 bytes"),
        (build_frame(Kind.SETTINGS, 0, 0, b"12345"), Fault.FRAME_SIZE_ERROR, "SETTINGS"),
        (setting(Setting.INITIAL_WINDOW_SIZE, 2**31), Fault.FLOW_CONTROL_ERROR, "beyond all measure"),
        (build_frame(Kind.WINDOW_UPDATE, 0, 0, bytes(4)), Fault.PROTOCOL_ERROR, "grows by nothing"),
        (build_frame(Kind.WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"), Fault.FLOW_CONTROL_ERROR, "beyond all measure"),
        (build_frame(Kind.PUSH_PROMISE, 0, 1, bytes(4)), Fault.PROTOCOL_ERROR, "cannot push"),
        (build_frame(Kind.HEADERS, Flag.PADDED, 1, b"\x09x"), Fault.PROTOCOL_ERROR, "more padding than payload"),
    ],
)
async def test_a_broken_rule_ends_the_connection_and_says_which(
    peer: Peer, frames: bytes, fault: Fault, words: str
) -> None:
    peer.send(frames)
    found, text = await peer.fault()
    assert found is fault
    assert words in text


async def test_more_than_the_window_allows_ends_the_call(peer: Peer, desk: Desk) -> None:
    """Nobody reads what a held call sends."""
    peer.send(build_frame(Kind.HEADERS, Flag.END_HEADERS, 1, head("Held")))
    for _ in range(80):
        peer.send(build_frame(Kind.DATA, 0, 1, message(b"x" * 16_000)))
    _, _, trailers = await peer.until(Kind.HEADERS)
    assert b"more was sent than the window allows" in trailers


async def test_a_browser_is_told_that_this_is_no_page(desk: Desk) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", desk.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    assert b"HTTP/1.1 400 Bad Request" in answer
    assert b"This port speaks gRPC" in answer


async def test_others_are_served_while_one_makes_noise(desk: Desk, channel: grpc.aio.Channel) -> None:
    for noise in (
        PREFACE + b"\xff" * 1000,
        b"\0" * 1000,
        PREFACE[:10],
        PREFACE + build_frame(Kind.HEADERS, 4, 1, head()),
    ):
        _, writer = await asyncio.open_connection("127.0.0.1", desk.port)
        writer.write(noise)
        await writer.drain()
        echo: Any = channel.unary_unary("/t.T/Echo")
        assert await echo(b"still here") == b"still here"
        writer.close()
