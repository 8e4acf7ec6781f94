"""A gRPC server on one event loop, made for many connections with small messages: see docs/adr/0006.

It takes the servicers that protoc generates for grpc.aio (unary and streaming), with deadlines, cancellation, flow
control, metadata, gzip requests, keepalive and TLS. It does not compress its own answers.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import grpc

from strata.grpcserver.connection import Check, Connection, Gate, Service
from strata.grpcserver.limits import Complaints, max_connections
from strata.grpcserver.wire import Turns

__all__ = ["Server"]

_MAX_MESSAGE_BYTES = 4 << 20
_KEEPALIVE_S = 20.0  # a peer that was silent so long is asked, and is gone after as long without an answer
_BACKLOG = 4_096
_HANDSHAKE_S = 10.0


def _open_gate(transport: asyncio.Transport) -> Check:
    return lambda path, metadata: None


class Server:
    """`gate` may refuse a call by its connection, path and metadata, before its handler sees it."""

    def __init__(self, gate: Gate = _open_gate, max_message: int = _MAX_MESSAGE_BYTES) -> None:
        self._methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        self._connections: dict[Connection, None] = {}  # oldest first
        self._emptied = asyncio.Event()
        self._max_connections = max_connections()
        self.complaints = Complaints()
        self._service = Service(
            methods=self._methods,
            gate=gate,
            max_message=max_message,
            opened=self._on_opened,
            closed=self._on_closed,
            turns=Turns(),
            complaints=self.complaints,
        )
        self._listener: asyncio.Server | None = None
        self._keepalive: asyncio.Task[None] | None = None
        self._stopped = False

    # --- what generated code calls

    def add_registered_method_handlers(
        self, service: str, method_handlers: "Mapping[str, grpc.RpcMethodHandler[Any, Any]]"
    ) -> None:
        for name, handler in method_handlers.items():
            self._methods[f"/{service}/{name}"] = handler

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[object]) -> None:
        """Generated code registers every method under both names; the other one is enough."""

    # --- start and stop

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Serves there; returns the port, which the system chose when it was 0."""
        loop = asyncio.get_running_loop()
        patience = _HANDSHAKE_S if tls is not None else None
        self._listener = await loop.create_server(
            self._accept, host.strip("[]"), port, backlog=_BACKLOG, ssl=tls, ssl_handshake_timeout=patience
        )
        self._keepalive = loop.create_task(self._ask_the_silent())
        bound: int = self._listener.sockets[0].getsockname()[1]
        return bound

    async def start_unix(self, bound: socket.socket) -> None:
        """Serves on a socket of this machine's own, which is bound already."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_unix_server(self._accept, sock=bound, backlog=_BACKLOG)
        self._keepalive = loop.create_task(self._ask_the_silent())

    def unread_s(self) -> float:
        """How long what somebody has said waits to be read."""
        return self._service.turns.unread_s()

    async def stop(self, grace: float) -> None:
        """No new connections and calls; those that run have `grace` seconds to end."""
        if self._listener is not None:
            self._listener.close()
        if self._keepalive is not None:
            self._keepalive.cancel()
        for connection in self._connections:
            connection.drain()
        for connection in [item for item in self._connections if not item.busy]:
            connection.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wait_empty(), grace)
        for connection in list(self._connections):
            connection.abort()
        await self._wait_empty()
        self._stopped = True

    async def _wait_empty(self) -> None:
        while self._connections:
            self._emptied.clear()
            await self._emptied.wait()

    def _accept(self) -> Connection:
        return Connection(self._service)

    def _on_opened(self, connection: Connection) -> None:
        """After its TLS handshake, if there is one: whoever fails that was never here."""
        if len(self._connections) >= self._max_connections:
            self._make_room()
        self._connections[connection] = None
        if self._stopped:  # it was accepted before, and asyncio opens it some turns later
            connection.abort()

    def _make_room(self) -> None:
        """Closes the oldest connection that never made a call, or the oldest of all when each made one."""
        unused = (connection for connection in self._connections if connection.unused)
        oldest = next(unused, None) or next(iter(self._connections))
        self.complaints.add("a connection too many", lambda: "of any", f"{len(self._connections):,} are open")
        self._connections.pop(oldest)
        oldest.abort()

    def _on_closed(self, connection: Connection) -> None:
        self._connections.pop(connection, None)
        if not self._connections:
            self._emptied.set()

    async def _ask_the_silent(self) -> None:
        while True:
            await asyncio.sleep(_KEEPALIVE_S)
            for connection in list(self._connections):
                connection.check_alive()
