"""A server with a few methods on raw bytes, and grpcio's own client for it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest

from strata.grpcserver.call import Call, Refusal
from strata.grpcserver.connection import Check, Connection, Service
from strata.grpcserver.headers import Metadata
from strata.grpcserver.server import Server
from strata.grpcserver.wire import Turns


@dataclass
class Desk:
    """What the handlers did, for tests to look at."""

    port: int = 0
    started: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    metadata: list[Metadata] = field(default_factory=list)
    callers: list[object] = field(default_factory=list)
    heard: list[bytes] = field(default_factory=list)
    sent: int = 0

    async def echo(self, request: bytes, call: Call) -> bytes:
        self.metadata.append(call.invocation_metadata())
        self.callers.append(call.caller)
        return request

    async def held(self, request: bytes, call: Call) -> bytes:
        self.started.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return request

    async def broken(self, request: bytes, call: Call) -> bytes:
        raise ValueError(f"cannot do {request.decode()}")

    async def refused(self, request: bytes, call: Call) -> bytes:
        await call.abort(grpc.StatusCode.FAILED_PRECONDITION, "nö: 100 % no", (("why", "so"), ("more-bin", b"\0\xff")))

    async def many(self, request: bytes, call: Call) -> AsyncIterator[bytes]:
        for _ in range(int(request)):
            yield b"x" * 100_000
            self.sent += 1

    async def talk(self, requests: AsyncIterator[bytes], call: Call) -> None:
        async for request in requests:
            await call.write(request)

    async def listen(self, requests: AsyncIterator[bytes], call: Call) -> None:
        def on_message(message: bytes) -> None:
            if message == b"fail":
                raise ValueError("as asked")
            self.heard.append(message)
            call.send(message)

        try:
            await call.listen(on_message)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def add(self, requests: AsyncIterator[bytes], call: Call) -> bytes:
        return b"".join([request async for request in requests])


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


def gate(transport: asyncio.Transport) -> Check:
    """Every connection's check: a stranger by its own word is refused, all others are whom they say."""

    def check(path: str, metadata: Metadata) -> object:
        who = dict(metadata).get("who", "friend")
        return Refusal(grpc.StatusCode.UNAUTHENTICATED, "not you") if who == "stranger" else who

    return check


def register(server: Server, desk: Desk) -> None:
    handlers: dict[str, Any] = {
        "Echo": grpc.unary_unary_rpc_method_handler(desk.echo),
        "Held": grpc.unary_unary_rpc_method_handler(desk.held),
        "Broken": grpc.unary_unary_rpc_method_handler(desk.broken),
        "Refused": grpc.unary_unary_rpc_method_handler(desk.refused),
        "Many": grpc.unary_stream_rpc_method_handler(desk.many),
        "Talk": grpc.stream_stream_rpc_method_handler(desk.talk),
        "Listen": grpc.stream_stream_rpc_method_handler(desk.listen),
        "Add": grpc.stream_unary_rpc_method_handler(desk.add),
    }
    server.add_registered_method_handlers("t.T", handlers)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server(gate)
    yield server
    await server.stop(0)


@pytest.fixture
async def desk(server: Server) -> Desk:
    desk = Desk()
    register(server, desk)
    desk.port = await server.start("127.0.0.1", 0)
    return desk


@pytest.fixture
async def channel(desk: Desk) -> AsyncIterator[grpc.aio.Channel]:
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{desk.port}", options=options) as channel:
        yield channel


def connect(desk: Desk, max_message: int = 1000) -> tuple[Connection, Sink]:
    """A connection to the desk that is fed by hand."""
    server = Server()
    register(server, desk)
    service = Service(
        methods=server._methods,  # the real handlers
        gate=lambda transport: lambda path, metadata: None,
        max_message=max_message,
        opened=lambda connection: None,
        closed=lambda connection: None,
        turns=Turns(),
        complaints=server.complaints,
    )
    connection, sink = Connection(service), Sink()
    connection.connection_made(sink)
    return connection, sink
