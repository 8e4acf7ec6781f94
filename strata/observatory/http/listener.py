"""uvicorn inside our own loop: start returns when requests are answered, stop when the last one is done. Every request
knows the other end of its connection."""

import asyncio
import contextlib
import socket
from collections.abc import Generator

import uvicorn
from fastapi import FastAPI

from strata.observatory.http.protocol import BoundedHttp
from strata.trust.identity import Identity
from strata.trust.peer import Peer

__all__ = ["PEER", "HttpListener"]

PEER = "peer"  # of a request's state

_DRAIN_S = 3


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield  # the composition root owns the signals


class _Protocol(BoundedHttp):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.app_state = {**self.app_state, PEER: Peer.of(transport)}


class HttpListener:
    """One uvicorn server on one socket that is bound already."""

    def __init__(self, app: FastAPI, sock: socket.socket, identity: Identity | None = None) -> None:
        config = uvicorn.Config(
            app,
            http=_Protocol,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_DRAIN_S,
            ssl_certfile=identity.chain if identity else None,
            ssl_keyfile=identity.key if identity else None,
        )
        self._server = _Server(config)
        self._socket = sock
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name="http")
        while not self._server.started:
            if self._task.done():
                self._task.result()
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        if self._task is None:
            return
        self._server.should_exit = True
        await self._task
