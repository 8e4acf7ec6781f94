"""What one connection may do: each limit at its edge, with peers that mean well on the near side of it."""

import asyncio
import contextlib

import grpc
import pytest

from strata.grpcserver.frames import ConnectionFault, Fault, Flag, Kind, build_frame
from strata.grpcserver.limits import MAX_CALLS, RESET, Allowance, Complaints
from strata.grpcserver.server import Server
from tests.unit.grpcserver.conftest import Desk
from tests.unit.grpcserver.test_connection import Peer, head, message, peer
from tests.unit.grpcserver.test_server import failure, unary

__all__ = ["peer"]  # the fixture


async def test_a_call_too_many_is_refused_and_the_others_go_on(peer: Peer, desk: Desk) -> None:
    for stream in range(1, 2 * MAX_CALLS + 2, 2):
        peer.send(
            build_frame(Kind.HEADERS, Flag.END_HEADERS, stream, head("Held")),
            build_frame(Kind.DATA, Flag.END_STREAM, stream, message(b"")),
        )
    _, stream, payload = await peer.until(Kind.RST_STREAM)
    assert (stream, int.from_bytes(payload, "big")) == (2 * MAX_CALLS + 1, Fault.REFUSED_STREAM)
    desk.go.set()
    answered = {(await peer.until(Kind.DATA))[1] for _ in range(MAX_CALLS)}
    assert answered == set(range(1, 2 * MAX_CALLS, 2))


async def test_a_client_that_knows_the_limit_waits_and_gets_all_answers(channel: grpc.aio.Channel, desk: Desk) -> None:
    calls = [unary(channel, "Echo")(b"%d" % number) for number in range(3 * MAX_CALLS)]
    assert [await call for call in calls] == [b"%d" % number for number in range(3 * MAX_CALLS)]


async def test_large_messages_at_once_are_taken_up_to_what_is_kept(channel: grpc.aio.Channel) -> None:
    """Ten of them are more than the connection's window, whose bytes no handler has read."""
    large = b"x" * (4 << 20)
    calls = [unary(channel, "Echo")(large) for _ in range(10)]
    assert [len(await call) for call in calls] == [len(large)] * 10


async def test_windows_are_given_back_by_calls_that_never_read(channel: grpc.aio.Channel) -> None:
    """What a refused call had sent must not be missing for the next ones: 40 times a megabyte, the window is 16."""
    for _ in range(40):
        await failure(unary(channel, "Broken")(b"y" * (1 << 20)))
    assert await unary(channel, "Echo")(b"still") == b"still"


async def test_the_oldest_idle_connection_makes_room(desk: Desk, server: Server, channel: grpc.aio.Channel) -> None:
    """Who made a call stays."""
    assert await unary(channel, "Echo")(b"first") == b"first"
    server._max_connections = 10
    idle = [await asyncio.open_connection("127.0.0.1", desk.port) for _ in range(12)]
    async with asyncio.timeout(60):
        for reader, _ in idle[:3]:
            with contextlib.suppress(ConnectionError):
                await reader.read()
    assert await unary(channel, "Echo")(b"again") == b"again"
    for _, writer in idle:
        writer.close()


def test_an_allowance_fills_again_with_time() -> None:
    allowance = Allowance()
    with pytest.raises(ConnectionFault, match="too many resets") as caught:
        _spend(allowance, 100_000)
    assert caught.value.fault is Fault.ENHANCE_YOUR_CALM
    allowance._filled_at -= 1.0  # a second passes
    _spend(allowance, 900)


def _spend(allowance: Allowance, number: int) -> None:
    for _ in range(number):
        allowance.spend(RESET, "resets")


def test_the_log_says_each_reason_once_and_counts_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    complaints = Complaints()
    for number in range(1_000):
        complaints.add("a refused call", lambda: "peer", f"call {number}")
    assert complaints.counts["a refused call"] == 1_000
    assert len(caplog.records) == 1
