"""One call as its handler sees it. It has the names of grpc.aio's context as far as servicers use them, and two more,
`listen` and `send`, which cost no task switch.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import grpc

from strata.grpcserver.frames import Fault
from strata.grpcserver.headers import Metadata, RequestHead, build_trailers
from strata.grpcserver.inbound import Inbound, InLink, Unreadable
from strata.grpcserver.outbound import Link, Outbound
from strata.grpcserver.wire import Ear

__all__ = ["Call", "CallLink", "Refusal"]

_log = logging.getLogger(__name__)

_NUMBERS: dict[grpc.StatusCode, int] = {code: code.value[0] for code in grpc.StatusCode}


class _Aborted(Exception):
    """Ends a handler whose call has been answered by `abort`."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The status of a call that ends before its handler sees it."""

    code: grpc.StatusCode
    details: str
    metadata: Metadata = ()


class CallLink(InLink, Link, Protocol):
    """What a call needs of its connection: the links of both its halves, and the end of a stream."""

    peer_window: int
    ear: Ear | None

    def reset(self, stream: int, fault: Fault) -> None: ...

    def ended(self, stream: int) -> None: ...

    def when_lost(self, listener: Callable[[], None]) -> None: ...


class Call:
    """A call from its first headers to its trailers. The connection feeds it; its handler runs in a task of its own.
    `caller` is what the server's gate recognised the peer as."""

    __slots__ = (
        "_closed",
        "_encode",
        "_handler",
        "_head",
        "_in",
        "_link",
        "_listening",
        "_status",
        "_stream",
        "_task",
        "_timer",
        "caller",
        "out",
        "send_bytes",
    )

    def __init__(
        self,
        link: CallLink,
        stream: int,
        head: RequestHead,
        handler: "grpc.RpcMethodHandler[Any, Any]",
        caller: object,
    ) -> None:
        decode: Callable[[bytes], Any] = handler.request_deserializer or bytes
        self._encode: Callable[[Any], bytes] = handler.response_serializer or bytes
        self._link = link
        self._stream = stream
        self._head = head
        self._handler = handler
        self.caller = caller
        self._in = Inbound(link, stream, decode, head.encoding)
        self.out = Outbound(link, stream, link.peer_window)
        self.send_bytes = self.out.send  # `send` of a message that is serialised already
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._listening: asyncio.Future[None] | None = None
        self._status: tuple[grpc.StatusCode, str] | None = None
        self._timer: asyncio.TimerHandle | None = None
        if head.timeout_s is not None:
            late = (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
            self._timer = asyncio.get_running_loop().call_later(head.timeout_s, self.end, *late)
        if handler.request_streaming:
            self._start()

    # --- from the connection

    def feed(self, data: bytes, start: int, end: int) -> None:
        if self._closed:
            self._link.consumed(end - start)
            return
        try:
            self._in.feed(data, start, end)
        except Unreadable as error:
            self.end(error.code, error.details)

    def _failed(self, error: Exception) -> None:
        """A message could not be read, or its listener raised: that is for whoever called `listen`."""
        if isinstance(error, Unreadable):
            self.end(error.code, error.details)
            return
        self._in.mute()
        if self._listening is not None and not self._listening.done():
            self._listening.set_exception(error)

    def feed_end(self) -> None:
        if self._closed or self._in.ended:
            return
        try:
            self._in.feed_end()
        except Unreadable as error:
            self.end(error.code, error.details)
            return
        if self._listening is not None and not self._listening.done():
            self._listening.set_result(None)
        if not self._handler.request_streaming:
            if len(self._in) == 1:
                self._start()
            else:
                self.end(grpc.StatusCode.INTERNAL, f"one request was expected, {len(self._in)} came")

    def cancel(self) -> None:
        """The peer, or its connection, is gone."""
        if not self._closed:
            self._close()
            self.out.drop()
            if self._task is not None:
                self._task.cancel()

    # --- for the handler

    def when_lost(self, listener: Callable[[], None]) -> None:
        """Calls `listener` when the connection that this call came by has ended, however long after the call."""
        self._link.when_lost(listener)

    def invocation_metadata(self) -> Metadata:
        return self._head.metadata

    async def read(self) -> Any:
        """The next message of the peer, or grpc.aio.EOF."""
        return await self._in.read()

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self._in.read()) is not grpc.aio.EOF:
            yield message

    async def listen(self, listener: Callable[[Any], None]) -> None:
        """Gives every message to `listener` as it comes, until the peer has no more. What the listener raises ends it,
        and is raised here."""
        try:
            self._in.listen(listener, self._failed)
        except Exception:
            self._in.mute()
            raise
        self._link.ear = self._in
        if not self._in.ended:
            self._listening = asyncio.get_running_loop().create_future()
            await self._listening

    async def listen_bytes(self, listener: Callable[[bytes], None]) -> None:
        """`listen` for a listener that reads the messages itself."""
        self._in.decode = bytes
        await self.listen(listener)

    async def write(self, message: Any) -> None:
        """Sends a message, and waits while the peer does not take what was sent."""
        self.out.send(self._encode(message))
        await self.out.drained()

    def send(self, message: Any) -> None:
        """Sends a message without waiting. A peer that does not read is cut off."""
        self.send_bytes(self._encode(message))

    def set_code(self, code: grpc.StatusCode) -> None:
        self._status = (code, self._status[1] if self._status else "")

    def set_details(self, details: str) -> None:
        self._status = (self._status[0] if self._status else grpc.StatusCode.UNKNOWN, details)

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Iterable[tuple[str, str | bytes]] = ()
    ) -> NoReturn:
        """Ends the call with a status; raises always."""
        self.finish(code, details, trailing_metadata)
        raise _Aborted

    # --- the handler's task

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._handle()
            self.finish(*(self._status or (grpc.StatusCode.OK, "")))
        except _Aborted:
            return
        except Unreadable as error:
            self.finish(error.code, error.details)
        except Exception as error:
            if self._status is None:
                _log.exception("%s failed", self._head.path)
            self.finish(*(self._status or (grpc.StatusCode.UNKNOWN, f"Unexpected {type(error)}: {error}")))

    async def _handle(self) -> None:
        handler = self._handler
        behaviour = (
            (handler.stream_stream if handler.response_streaming else handler.stream_unary)
            if handler.request_streaming
            else (handler.unary_stream if handler.response_streaming else handler.unary_unary)
        )
        assert behaviour is not None
        answer: Any = behaviour(self if handler.request_streaming else self._in.pop(), self)  # type: ignore[arg-type]  # the same methods
        if not handler.response_streaming:
            self.out.send(self._encode(await answer))
        elif hasattr(answer, "__aiter__"):
            async for message in answer:
                await self.write(message)
        else:
            await answer

    # --- the end

    def finish(
        self, code: grpc.StatusCode, details: str = "", metadata: Iterable[tuple[str, str | bytes]] = ()
    ) -> None:
        """Sends the trailers behind everything that was sent; what the peer still says is not heard."""
        if self._closed:
            return
        self._close()
        self.out.finish(build_trailers(_NUMBERS[code], details, tuple(metadata)))
        if self.out.done:
            self.gone()

    def gone(self) -> None:
        """Called when the trailers have been handed to the connection."""
        if not self._in.ended:
            self._link.reset(self._stream, Fault.NO_ERROR)  # nobody reads the rest of the request
        self._link.ended(self._stream)

    def end(self, code: grpc.StatusCode, details: str, metadata: Iterable[tuple[str, str | bytes]] = ()) -> None:
        """Finishes the call from outside of its handler, which is cancelled."""
        self.finish(code, details, metadata)
        if self._task is not None:
            self._task.cancel()

    def _close(self) -> None:
        self._closed = True
        if self._link.ear is self._in:
            self._link.ear = None
        self._in.drop()
        if self._timer is not None:
            self._timer.cancel()
