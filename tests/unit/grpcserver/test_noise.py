"""The connection under noise, in whatever portions: nothing is raised into the loop, and what it counts stays right.

`--fuzz-cases` says how many cases; 100,000 take about ten minutes.
"""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strata.grpcserver.frames import PREFACE, build_frame
from tests.support.hostile_peer import head
from tests.unit.grpcserver.conftest import Desk, connect


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
    connection, sink = connect(Desk())
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
