"""The server as grpcio's own client sees it: every kind of call, their limits, and the end."""

import asyncio
import gzip
import socket
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from strata.grpcserver.server import Server
from tests.unit.grpcserver.conftest import Desk


def unary(channel: grpc.aio.Channel, name: str) -> Any:
    return channel.unary_unary(f"/t.T/{name}")


def streaming(method: object) -> Any:
    """grpcio's types cannot say that a method is of bytes."""
    return method


async def failure(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


@pytest.mark.parametrize("size", [0, 1, 16_379, 16_380, 65_536, 1 << 20, 4 << 20])
async def test_a_message_of_any_size_comes_back(channel: grpc.aio.Channel, size: int) -> None:
    assert await unary(channel, "Echo")(b"x" * size) == b"x" * size


async def test_metadata_of_every_call_is_its_own(channel: grpc.aio.Channel, desk: Desk) -> None:
    """The client compresses headers against a table that grows; what is remembered here must follow it."""
    for number in range(60):
        metadata = (("who", f"w{number // 3}"), ("raw-bin", bytes([0, number])))
        await unary(channel, "Echo")(b"", metadata=metadata)
        assert set(metadata) <= set(desk.metadata[-1])


async def test_too_large_a_message_is_refused_and_the_connection_lives(channel: grpc.aio.Channel) -> None:
    error = await failure(unary(channel, "Echo")(b"x" * (5 << 20)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "5,242,880 bytes, at most 4,194,304" in str(error.details())
    assert await unary(channel, "Echo")(b"on") == b"on"


async def test_gzip_is_read_and_a_bomb_is_not(channel: grpc.aio.Channel) -> None:
    assert await unary(channel, "Echo")(b"ab" * 5000, compression=grpc.Compression.Gzip) == b"ab" * 5000
    assert len(gzip.compress(bytes(5 << 20))) < 10_000
    error = await failure(unary(channel, "Echo")(bytes(5 << 20), compression=grpc.Compression.Gzip))
    assert (error.code(), error.details()) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "the message inflates to more than 4,194,304 bytes",
    )


async def test_an_encoding_that_nobody_knows_is_named(channel: grpc.aio.Channel) -> None:
    error = await failure(unary(channel, "Echo")(b"x" * 5000, compression=grpc.Compression.Deflate))
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "'deflate' is not one of identity, gzip" in str(error.details())


async def test_a_deadline_ends_the_handler(channel: grpc.aio.Channel, desk: Desk) -> None:
    error = await failure(unary(channel, "Held")(b"", timeout=0.1))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await asyncio.wait_for(desk.cancelled.wait(), 5)


async def test_a_cancelled_call_ends_the_handler(channel: grpc.aio.Channel, desk: Desk) -> None:
    call = unary(channel, "Held")(b"")
    waiting = asyncio.ensure_future(_ended(call))
    await asyncio.wait_for(desk.started.wait(), 5)
    call.cancel()
    await asyncio.wait_for(desk.cancelled.wait(), 5)
    await waiting


async def test_a_lost_connection_ends_its_handlers(desk: Desk) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{desk.port}") as channel:
        waiting = asyncio.ensure_future(_ended(unary(channel, "Held")(b"")))
        await asyncio.wait_for(desk.started.wait(), 5)
    await asyncio.wait_for(desk.cancelled.wait(), 5)
    await waiting


async def _ended(call: Any) -> None:
    with pytest.raises((grpc.aio.AioRpcError, asyncio.CancelledError)):
        await call


async def test_a_bug_and_an_abort_and_a_missing_method_have_their_status(channel: grpc.aio.Channel) -> None:
    bug = await failure(unary(channel, "Broken")(b"it"))
    assert (bug.code(), bug.details()) == (grpc.StatusCode.UNKNOWN, "Unexpected <class 'ValueError'>: cannot do it")
    refused = await failure(unary(channel, "Refused")(b""))
    assert (refused.code(), refused.details()) == (grpc.StatusCode.FAILED_PRECONDITION, "nö: 100 % no")
    assert {("why", "so"), ("more-bin", b"\0\xff")} <= set(refused.trailing_metadata())
    missing = await failure(unary(channel, "Nothing")(b""))
    assert (missing.code(), missing.details()) == (grpc.StatusCode.UNIMPLEMENTED, "there is no method /t.T/Nothing")


async def test_the_gate_refuses_before_the_handler(channel: grpc.aio.Channel, desk: Desk) -> None:
    error = await failure(unary(channel, "Echo")(b"x" * 100_000, metadata=(("who", "stranger"),)))
    assert (error.code(), error.details()) == (grpc.StatusCode.UNAUTHENTICATED, "not you")
    assert desk.metadata == []
    missing = await failure(unary(channel, "Nothing")(b"", metadata=(("who", "stranger"),)))
    assert missing.code() is grpc.StatusCode.UNAUTHENTICATED  # and learns not even which methods there are
    assert await unary(channel, "Echo")(b"friend") == b"friend"
    assert desk.callers == ["friend"]


async def test_many_held_calls_on_one_connection(channel: grpc.aio.Channel, desk: Desk) -> None:
    answers = asyncio.gather(*[unary(channel, "Held")(b"%d" % number) for number in range(500)])
    await asyncio.wait_for(desk.started.wait(), 5)
    desk.go.set()
    assert await answers == [b"%d" % number for number in range(500)]


async def test_a_stream_of_answers_waits_for_its_reader(channel: grpc.aio.Channel, desk: Desk) -> None:
    call = streaming(channel.unary_stream("/t.T/Many"))(b"300")
    assert len(await call.read()) == 100_000
    stuck = await _settled(lambda: desk.sent)
    assert stuck < 300, "30 MB were sent to a client that read one message"
    assert [len(await call.read()) for _ in range(299)] == [100_000] * 299
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK


async def _settled(value: Callable[[], int]) -> int:
    """The value once it has stopped to change."""
    seen, same = value(), 0
    while same < 20:
        await asyncio.sleep(0.01)
        same = same + 1 if value() == seen else 0
        seen = value()
    return seen


@pytest.mark.parametrize("method", ["Talk", "Listen"])
async def test_both_sides_talk_until_one_has_no_more(channel: grpc.aio.Channel, method: str) -> None:
    call = streaming(channel.stream_stream(f"/t.T/{method}"))()
    for number in range(300):
        await call.write(b"m%d" % number)
        assert await call.read() == b"m%d" % number
    for _ in range(40):
        await call.write(b"y" * 100_000)
    assert [len(await call.read()) for _ in range(40)] == [100_000] * 40
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK


async def test_what_a_listener_raises_ends_the_call(channel: grpc.aio.Channel) -> None:
    call = streaming(channel.stream_stream("/t.T/Listen"))()
    await call.write(b"one")
    assert await call.read() == b"one"
    await call.write(b"fail")
    assert await call.code() is grpc.StatusCode.UNKNOWN
    assert await call.details() == "Unexpected <class 'ValueError'>: as asked"


async def test_many_requests_one_answer(channel: grpc.aio.Channel) -> None:
    call = streaming(channel.stream_unary("/t.T/Add"))()
    for part in (b"a", b"b", b"c"):
        await call.write(part)
    await call.done_writing()
    assert await call == b"abc"


async def test_stop_lets_a_running_call_end(channel: grpc.aio.Channel, desk: Desk, server: Server) -> None:
    call = asyncio.ensure_future(_answer(unary(channel, "Held")(b"kept")))
    await asyncio.wait_for(desk.started.wait(), 5)
    stopping = asyncio.ensure_future(server.stop(5))
    desk.go.set()
    assert await call == b"kept"
    await asyncio.wait_for(stopping, 5)


async def test_who_was_accepted_and_is_opened_after_the_stop_is_cut_off(server: Server) -> None:
    await server.stop(0.0)
    ours, theirs = socket.socketpair()
    await asyncio.get_running_loop().connect_accepted_socket(server._accept, ours)
    reader, writer = await asyncio.open_connection(sock=theirs)
    async with asyncio.timeout(20):
        await reader.read()
    writer.close()


async def test_stop_cuts_off_who_does_not_end(channel: grpc.aio.Channel, desk: Desk, server: Server) -> None:
    call = asyncio.ensure_future(failure(unary(channel, "Held")(b"")))
    await asyncio.wait_for(desk.started.wait(), 5)
    await asyncio.wait_for(server.stop(0.05), 5)
    assert (await call).code() is grpc.StatusCode.UNAVAILABLE
    await asyncio.wait_for(desk.cancelled.wait(), 5)


async def _answer(call: Any) -> bytes:
    return bytes(await call)
