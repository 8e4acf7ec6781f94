"""uvicorn's HTTP connection with limits that it does not have: how many, how long a request and its reader may take,
how large a head may be. A connection beyond one of them is closed; nobody else notices.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["BoundedHttp"]

_MAX_CONNECTIONS = 4_000  # tabs, scripts and probes; 500 streams are measured in benchmarks/observatory.py
_HEAD_S = 20.0  # from the first byte, or from the connection's start, to the end of the headers
_BODY_S = 120.0
_STALLED_S = 60.0  # a client that takes less than a piece of its answer (256 KB) in so long is gone
_MAX_HEAD_BYTES = 64 * 1024


class BoundedHttp(HttpToolsProtocol):
    """One timer for what the client owes, one for what it does not take."""

    _owed: asyncio.TimerHandle | None = None
    _untaken: asyncio.TimerHandle | None = None
    _head_bytes: int | None = 0  # None while no head is being read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        if len(self.connections) > _MAX_CONNECTIONS:
            transport.abort()
            return
        self._expect(_HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        self._await_reader(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        in_head = self._head_bytes is not None
        super().data_received(data)
        if in_head and self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response(f"The request's head is larger than {_MAX_HEAD_BYTES} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = 0
        self._expect(_HEAD_S)

    def on_headers_complete(self) -> None:
        self._head_bytes = None
        self._expect(_BODY_S)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._expect(None)
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader(_STALLED_S)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._await_reader(None)

    def _expect(self, seconds: float | None) -> None:
        if self._owed is not None:
            self._owed.cancel()
        self._owed = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)

    def _await_reader(self, seconds: float | None) -> None:
        if self._untaken is not None:
            self._untaken.cancel()
        self._untaken = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
