"""A message that comes alone is heard on a shorter way than frames are: what it means is the same."""

import asyncio
import random

from strata.grpcserver.connection import Connection
from strata.grpcserver.frames import MAX_FRAME_BYTES, PREFACE, Flag, Kind, build_frame
from tests.support.hostile_peer import head
from tests.unit.grpcserver.conftest import Desk, Sink, connect

_OPEN = build_frame(Kind.HEADERS, Flag.END_HEADERS, 1, head("/t.T/Listen"))


def message(payload: bytes) -> bytes:
    return b"\0" + len(payload).to_bytes(4, "big") + payload


def data(payload: bytes) -> bytes:
    return build_frame(Kind.DATA, 0, 1, message(payload))


async def _listening(desk: Desk) -> tuple[Connection, Sink]:
    """A connection on which somebody listens."""
    connection, sink = connect(desk, max_message=MAX_FRAME_BYTES)
    connection.data_received(PREFACE + _OPEN)
    while connection.ear is None:  # noqa: ASYNC110  # nobody has an event for it
        await asyncio.sleep(0)
    return connection, sink


async def test_what_is_heard_does_not_depend_on_how_it_came() -> None:
    rng = random.Random(3)
    said = [b"%d" % number * rng.randrange(1, 90) for number in range(400)]
    frames = []
    for text in said:
        whole, cut = message(text), rng.randrange(1, 5 + len(text))
        pieces = {0: [whole[:cut], whole[cut:]], 1: [whole, b""]}.get(rng.randrange(4), [whole])
        frames += [build_frame(Kind.DATA, 0, 1, piece) for piece in pieces]
    for together in (1, 2, 7, len(frames)):
        desk = Desk()
        connection, _ = await _listening(desk)
        for at in range(0, len(frames), together):
            connection.data_received(b"".join(frames[at : at + together]))
            await asyncio.sleep(0)
        while len(desk.heard) < len(said):  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert desk.heard == said


async def test_a_message_whose_bytes_come_in_pieces_is_heard_once() -> None:
    desk = Desk()
    connection, sink = await _listening(desk)
    for cut in (1, 8, 9, 13, 14, 15):
        whole = data(b"%d" % cut)
        connection.data_received(whole[:cut])
        connection.data_received(whole[cut:])
        connection.data_received(data(b"alone"))
    assert desk.heard == [text for cut in (1, 8, 9, 13, 14, 15) for text in (b"%d" % cut, b"alone")]
    assert not sink.closed


async def test_padded_compressed_and_last_messages_come_by_frames() -> None:
    desk = Desk()
    connection, sink = await _listening(desk)
    connection.data_received(build_frame(Kind.DATA, Flag.PADDED, 1, b"\2" + message(b"padded") + b"\0\0"))
    connection.data_received(data(b"plain"))
    connection.data_received(build_frame(Kind.DATA, Flag.END_STREAM, 1, message(b"last")))
    assert desk.heard == [b"padded", b"plain", b"last"]
    assert not sink.closed


async def test_windows_are_given_back_for_messages_that_come_alone() -> None:
    """Three times what the connection's window allows."""
    desk = Desk()
    connection, sink = await _listening(desk)
    for _ in range(3_000):
        connection.data_received(data(bytes(16_000)))
        connection.window = connection._calls[1].out.window = 1 << 30  # so that its echoes may leave
        await asyncio.sleep(0)
    assert len(desk.heard) == 3_000
    assert not sink.closed
    assert 0 <= connection._unconsumed + connection.uncredited < 16 << 20
    for _ in range(3_000):  # the same in company
        connection.data_received(data(bytes(8_000)) + data(b""))
        connection.window = connection._calls[1].out.window = 1 << 30
        await asyncio.sleep(0)
    assert len(desk.heard) == 9_000
    assert 0 <= connection._unconsumed + connection.uncredited < 16 << 20


async def test_a_listener_that_fails_hears_no_more_and_others_go_on() -> None:
    desk = Desk()
    connection, sink = await _listening(desk)
    for text in (b"one", b"fail", b"late"):
        connection.data_received(data(text))
    await asyncio.sleep(0)
    assert desk.heard == [b"one"]
    await asyncio.sleep(0)
    assert connection.ear is None
    connection.data_received(build_frame(Kind.HEADERS, Flag.END_HEADERS, 3, head("/t.T/Listen")))
    while connection.ear is None:  # noqa: ASYNC110
        await asyncio.sleep(0)
    connection.data_received(build_frame(Kind.DATA, 0, 3, message(b"two")))
    assert desk.heard == [b"one", b"two"]
    assert not sink.closed


async def test_a_message_in_the_middle_of_headers_breaks_a_rule() -> None:
    desk = Desk()
    connection, sink = await _listening(desk)
    connection.data_received(build_frame(Kind.HEADERS, 0, 3, head("/t.T/Listen")[:10]))
    connection.data_received(data(b"interrupts"))
    assert desk.heard == []
    assert sink.closed


async def test_a_message_larger_than_a_frame_may_be_breaks_a_rule() -> None:
    desk = Desk()
    connection, sink = await _listening(desk)
    payload = message(bytes(MAX_FRAME_BYTES - 4))
    connection.data_received(len(payload).to_bytes(3, "big") + b"\0\0" + (1).to_bytes(4, "big") + payload)
    assert desk.heard == []
    assert sink.closed
