"""What many peers say at once is read in several turns of the loop: all of it, in order, and what is little at once."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from strata.grpcserver.frames import PREFACE, ConnectionFault, Kind, build_frame
from strata.grpcserver.limits import LITTLE_BYTES, READING_S, TURN_FRAMES
from strata.grpcserver.wire import Turns, Wire

_PEERS = 30
_FRAME_S = READING_S / 2


class _Desk:
    """Who was heard, and in which turn of the loop."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.turn = 0
        self.heard: list[tuple[int, bytes]] = []
        self.greeted = 0
        self.most_waiting = 0  # bytes of one peer

    def count(self) -> None:
        self.turn += 1
        asyncio.get_running_loop().call_soon(self.count)


class _Listener(Wire):
    """Takes long for every DATA frame."""

    def __init__(self, desk: _Desk) -> None:
        super().__init__(desk.turns)
        self._desk = desk

    def on_data(self, stream: int, flags: int, data: bytes, start: int, end: int) -> None:
        until = time.monotonic() + _FRAME_S
        while time.monotonic() < until:
            pass
        self._desk.heard.append((self._desk.turn, data[start : start + 6]))
        self._desk.most_waiting = max(self._desk.most_waiting, len(self._buffer))

    def on_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == Kind.PING:
            self._desk.heard.append((self._desk.turn, payload[:6]))
        else:
            self._desk.greeted += 1

    def on_fault(self, fault: ConnectionFault) -> None:
        raise AssertionError(fault)

    def on_writable(self) -> None: ...


@asynccontextmanager
async def _greeted(desk: _Desk, number: int) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Peers whose settings were read."""
    server = await asyncio.get_running_loop().create_server(lambda: _Listener(desk), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    peers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(number)]
    for peer in peers:
        peer.write(PREFACE + build_frame(Kind.SETTINGS, 0, 0))
    async with asyncio.timeout(60):
        while desk.greeted < number:  # noqa: ASYNC110  # nobody has an event for it
            await asyncio.sleep(0)
        yield peers
    for peer in peers:
        peer.close()
    server.close()


def _words(number: int) -> bytes:
    return build_frame(Kind.DATA, 0, 1, b"%05d-" % number + b"x" * LITTLE_BYTES)


async def test_one_turn_of_the_loop_does_not_read_all_that_came() -> None:
    desk = _Desk()
    async with _greeted(desk, _PEERS + 1) as (*talkers, modest):
        desk.count()
        for number, peer in enumerate(talkers):
            peer.write(_words(2 * number))
            peer.write(_words(2 * number + 1))
        modest.write(build_frame(Kind.PING, 0, 0, b"modest\0\0"))
        while len(desk.heard) < 2 * _PEERS + 1:  # noqa: ASYNC110
            await asyncio.sleep(0)
    heard, said = [each for _, each in desk.heard], [b"%05d-" % number for number in range(2 * _PEERS)]
    assert sorted(heard) == sorted([*said, b"modest"])
    assert all(heard.index(said[number]) < heard.index(said[number + 1]) for number in range(0, len(said), 2))
    assert max(Counter(turn for turn, _ in desk.heard).values()) < 10
    assert heard.index(b"modest") < 20


async def test_who_waits_is_heard_before_those_who_speak_later() -> None:
    """Newcomers that went first would keep it waiting as long as they come."""
    desk = _Desk()
    async with _greeted(desk, 2 * _PEERS) as peers:
        for number, peer in enumerate(peers[:_PEERS]):
            peer.write(_words(number))
        while not desk.heard:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for number, peer in enumerate(peers[_PEERS:], start=_PEERS):
            peer.write(_words(number))
        while len(desk.heard) < 2 * _PEERS:  # noqa: ASYNC110
            await asyncio.sleep(0)
    heard = [each for _, each in desk.heard]
    assert sorted(heard[:_PEERS]) == [b"%05d-" % number for number in range(_PEERS)]


async def test_how_long_somebody_waits_to_be_heard_is_known() -> None:
    desk = _Desk()
    longest = 0.0
    async with _greeted(desk, _PEERS) as peers:
        assert desk.turns.unread_s() == 0.0
        for number, peer in enumerate(peers):
            peer.write(_words(number))
        while len(desk.heard) < _PEERS:
            longest = max(longest, desk.turns.unread_s())
            await asyncio.sleep(0)
        assert desk.turns.unread_s() == 0.0
    assert longest > _PEERS * _FRAME_S / 2


async def test_a_few_words_are_heard_in_one_turn_however_long_that_takes() -> None:
    """On a busy host the clock runs on while the loop waits for a processor."""
    desk = _Desk()
    async with _greeted(desk, 1) as (peer,):
        desk.count()
        peer.write(b"".join(_words(number) for number in range(TURN_FRAMES)))
        while len(desk.heard) < TURN_FRAMES:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert len({turn for turn, _ in desk.heard}) == 1


async def test_what_peers_say_before_they_leave_is_heard_although_others_speak() -> None:
    desk = _Desk()
    async with _greeted(desk, _PEERS) as peers:
        for number, peer in enumerate(peers):
            peer.write(_words(2 * number))
            peer.write(_words(2 * number + 1))
            peer.close()
        while len(desk.heard) < 2 * _PEERS:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert sorted(each for _, each in desk.heard) == [b"%05d-" % number for number in range(2 * _PEERS)]


async def test_a_peer_that_sends_much_is_not_read_meanwhile() -> None:
    desk = _Desk()
    async with _greeted(desk, 1) as (peer,):
        for number in range(100):
            peer.write(build_frame(Kind.DATA, 0, 1, b"%05d-" % number + bytes(16_000)))
        while len(desk.heard) < 100:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert desk.most_waiting < 800_000
