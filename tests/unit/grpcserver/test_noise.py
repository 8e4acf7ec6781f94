"""The connection under noise, in whatever portions: nothing is raised into the loop, and what it counts stays right.

`--fuzz-cases` says how many cases; 100,000 take about ten minutes.
"""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strata.grpcserver.connection import Connection, Service
from strata.grpcserver.frames import PREFACE, build_frame
from strata.grpcserver.server import Server
from strata.grpcserver.wire import Turns
from tests.support.hostile_peer import head
from tests.unit.grpcserver.conftest import Desk, register


class Sink(asyncio.Transport):
    """Takes what is written, as a socket whose peer reads everything."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def write(self, data: object) -> None: ...

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


def message(payload: bytes) -> bytes:
    return b"\0" + len(payload).to_bytes(4, "big") + payload


METHODS = [head(f"/t.T/{name}") for name in ("Echo", "Held", "Listen", "Talk", "Add", "Many", "Nothing")]
FRAMES = st.builds(
    build_frame,
    st.one_of(st.integers(0, 11), st.sampled_from([0, 1, 1, 3, 8])),
    st.sampled_from([0, 1, 4, 4, 5, 8, 9, 0x20, 0x2D, 0xFF]),
    st.sampled_from([0, 1, 2, 3, 5, 7, 2**31 - 1]),
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from(METHODS),
        st.just(message(b"x")),
        st.just(message(b"2") * 3),
        st.just(message(bytes(900))[:500]),
        st.integers(0, 2**31 - 1).map(lambda number: number.to_bytes(4, "big")),
        st.integers(0, 2**31 - 1).map(lambda number: b"\0\4" + number.to_bytes(4, "big")),
    ),
)


def test_noise_ends_its_own_connection_at_worst(request: pytest.FixtureRequest) -> None:
    cases = request.config.getoption("--fuzz-cases")

    @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.one_of(FRAMES, FRAMES, st.binary(max_size=30)), max_size=12), st.integers(1, 400))
    def run(pieces: list[bytes], portion: int) -> None:
        with asyncio.Runner() as runner:
            runner.run(_feed(b"".join(pieces), portion))

    run()


async def _feed(noise: bytes, portion: int) -> None:
    failures: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(context))
    server = Server()
    register(server, Desk())
    service = Service(
        methods=server._methods,  # the real handlers
        gate=lambda transport: lambda path, metadata: None,
        max_message=1000,
        opened=lambda connection: None,
        closed=lambda connection: None,
        turns=Turns(),
        complaints=server.complaints,
    )
    connection, sink = Connection(service), Sink()
    connection.connection_made(sink)
    stream = PREFACE + noise
    for at in range(0, len(stream), portion):
        connection.data_received(stream[at : at + portion])
        await asyncio.sleep(0)
        if sink.closed:
            break
    connection.connection_lost(None)
    await asyncio.sleep(0)
    assert failures == []
    assert (connection.unread, connection.held, connection.blocked) == (0, 0, {})
