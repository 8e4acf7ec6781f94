"""A connection's timers: what the client owes, and what it does not take."""

import asyncio
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from strata.observatory.http.protocol import BoundedHttp


class Wire(asyncio.Transport):
    """A socket's end that remembers how it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = False
        self.sent = b""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name in ("peername", "sockname") else default

    def write(self, data: Any) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.aborted

    def close(self) -> None:
        self.aborted = True

    def abort(self) -> None:
        self.aborted = True


async def silent(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.Event().wait()


def connect(state: ServerState) -> tuple[BoundedHttp, Wire]:
    config = uvicorn.Config(silent, lifespan="off", log_config=None)
    config.load()
    protocol, wire = BoundedHttp(config, state, {}), Wire()
    protocol.connection_made(wire)
    return protocol, wire


def fire(timer: asyncio.TimerHandle | None) -> None:
    """As the loop does when the time has come."""
    assert timer is not None
    timer._run()


async def test_who_does_not_finish_its_head_or_body_is_cut_off() -> None:
    for sent in (b"", b"GET / HTTP/1.1\r\nhost: x\r\n", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nab"):
        protocol, wire = connect(ServerState())
        protocol.data_received(sent)
        assert not wire.aborted
        fire(protocol._owed)
        assert wire.aborted, sent


async def test_a_whole_request_owes_nothing() -> None:
    protocol, wire = connect(ServerState())
    protocol.data_received(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
    assert protocol._owed is None
    protocol.pause_writing()
    fire(protocol._untaken)
    assert wire.aborted, "it does not take its answer"
    protocol.resume_writing()
    assert protocol._untaken is None


async def test_one_connection_too_many_is_closed() -> None:
    state = ServerState()
    wires = [connect(state)[1] for _ in range(4_001)]
    assert [wire.aborted for wire in wires] == [False] * 4_000 + [True]
