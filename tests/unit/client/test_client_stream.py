"""Our own client of one stream, against our own server: messages of any size, ends of any kind."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from strata.client.client_stream import ClientStream
from strata.grpcserver import outbound
from strata.grpcserver.call import Call
from strata.grpcserver.server import Server

_BIG = 3 << 20  # more than a window, less than a message may have


class Echo:
    """Says everything again; "refuse" and "end" end the call."""

    async def talk(self, _: Any, context: Call) -> None:
        async for message in context:
            if message == b"refuse":
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "näh", (("strata-error-code", "fenced"),))
            if message == b"end":
                return
            await context.write(message)


@pytest.fixture
async def served() -> AsyncIterator[tuple[Server, int]]:
    server = Server()
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(Echo().talk)
    server.add_registered_method_handlers("test.Echo", {"Talk": handler})
    yield server, await server.start("127.0.0.1", 0)
    await server.stop(0.0)


class Talk:
    """One stream, and what came on it."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def open(self, port: int, path: str = "/test.Echo/Talk") -> ClientStream:
        loop = asyncio.get_running_loop()
        metadata = (("authorization", "Bearer " + "x" * 300),)
        _, stream = await loop.create_connection(
            lambda: ClientStream(path, metadata, self.heard.put_nowait), "127.0.0.1", port
        )
        return stream

    async def next(self) -> bytes:
        return await asyncio.wait_for(self.heard.get(), 20)


async def test_what_is_said_leaves_at_once() -> None:
    """Before the loop has another turn, and whoever waits for it with it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stream = await Talk().open(listener.getsockname()[1])
        peer, _ = listener.accept()
        with peer:
            for message in (b"first", b"second"):
                stream.send(message)
                peer.settimeout(20)
                said = b""
                while not said.endswith(message):
                    said += peer.recv(65_536)
        stream.abort()


async def test_messages_of_any_size_come_back_in_order(served: tuple[Server, int]) -> None:
    talk = Talk()
    stream = await talk.open(served[1])
    sent = [b"", b"a", b"b" * 20_000, b"c" * _BIG, b"d"]
    for message in sent:
        stream.send(message)
    assert [await talk.next() for _ in sent] == sent
    for _ in range(40):  # more than all windows together, if they were never opened again
        stream.send(b"e" * 500_000)
        assert len(await talk.next()) == 500_000
    await stream.leave(20)
    assert stream.ended.result().code() is grpc.StatusCode.OK


async def test_a_refusal_has_its_status_text_and_trailers(served: tuple[Server, int]) -> None:
    stream = await Talk().open(served[1])
    stream.send(b"refuse")
    end = await asyncio.wait_for(stream.ended, 20)
    assert (end.code(), end.details()) == (grpc.StatusCode.FAILED_PRECONDITION, "näh")
    assert dict(end.trailing_metadata())["strata-error-code"] == "fenced"
    stream.abort()
    missing = await Talk().open(served[1], "/test.Echo/Nothing")
    missing.send(b"")
    assert (await asyncio.wait_for(missing.ended, 20)).code() is grpc.StatusCode.UNIMPLEMENTED
    missing.abort()


async def test_the_end_of_the_server_is_the_end_of_the_stream(served: tuple[Server, int]) -> None:
    talk = Talk()
    stream = await talk.open(served[1])
    stream.send(b"hello")
    assert await talk.next() == b"hello"
    await served[0].stop(0.0)
    end = await asyncio.wait_for(stream.ended, 20)
    assert end.code() is grpc.StatusCode.UNAVAILABLE
    stream.send(b"into the void")


async def test_what_is_sent_after_an_abort_is_lost_and_nothing_else(served: tuple[Server, int]) -> None:
    talk = Talk()
    stream = await talk.open(served[1])
    stream.send(b"never")
    stream.abort()
    stream.send(b"never")
    end = await asyncio.wait_for(stream.ended, 20)
    assert end.code() is grpc.StatusCode.UNAVAILABLE
    assert talk.heard.empty()


async def test_a_server_that_never_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "MAX_HELD_BYTES", 1 << 20)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stream = await Talk().open(listener.getsockname()[1])
        num_sent = 0
        while not stream.ended.done() and num_sent < 20:
            stream.send(b"e" * 500_000)
            num_sent += 1
        end = stream.ended.result()
    assert (end.code(), num_sent) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 4)
    assert "bytes wait for a peer that does not read" in end.details()
