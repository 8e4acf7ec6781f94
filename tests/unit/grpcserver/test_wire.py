"""What many peers say at once is read in several turns of the loop: all of it, in order, and what is little at once."""

import asyncio
import time
from collections import Counter

from strata.grpcserver.frames import PREFACE, ConnectionFault, Kind, build_frame
from strata.grpcserver.limits import LITTLE_BYTES, READING_S
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

    def on_frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == Kind.PING:
            self._desk.heard.append((self._desk.turn, payload[:6]))
        else:
            self._desk.greeted += 1

    def on_fault(self, fault: ConnectionFault) -> None:
        raise AssertionError(fault)

    def on_writable(self) -> None: ...


async def test_one_turn_of_the_loop_does_not_read_all_that_came() -> None:
    desk, loop = _Desk(), asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Listener(desk), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    peers = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(_PEERS + 1)]
    for peer in peers:
        peer.write(PREFACE + build_frame(Kind.SETTINGS, 0, 0))
    async with asyncio.timeout(60):
        while desk.greeted < len(peers):  # noqa: ASYNC110  # nobody has an event for it
            await asyncio.sleep(0)
        desk.count()
        said = [b"%05d-" % number for number in range(2 * _PEERS)]
        *talkers, modest = peers
        for number, peer in enumerate(talkers):
            for words in said[2 * number : 2 * number + 2]:
                peer.write(build_frame(Kind.DATA, 0, 1, words + b"x" * LITTLE_BYTES))
        modest.write(build_frame(Kind.PING, 0, 0, b"modest\0\0"))
        while len(desk.heard) < len(said) + 1:  # noqa: ASYNC110
            await asyncio.sleep(0)
    heard = [each for _, each in desk.heard]
    assert sorted(heard) == sorted([*said, b"modest"])
    assert all(heard.index(said[number]) < heard.index(said[number + 1]) for number in range(0, len(said), 2))
    assert max(Counter(turn for turn, _ in desk.heard).values()) < 10
    assert heard.index(b"modest") < 20
    for peer in peers:
        peer.close()
    server.close()
