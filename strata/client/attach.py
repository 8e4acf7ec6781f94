"""The agent's stream to the coordinator: what is said leaves in order, answers go to a callback, until it breaks."""

import asyncio
import time
from collections.abc import Callable

from strata.client.client_stream import ClientStream
from strata.client.stream import open_stream
from strata.errors import StrataError
from strata.grpcserver.wire import Turns
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.status import from_rpc_error
from strata.trust.access import Access

__all__ = ["Attachment"]

_PATH = "/strata.agents.Agents/Attach"
_SILENCE_S = 10.0  # every beat is answered: a stream that was silent so long leads nowhere
_SILENCE_OF_SEVERAL_S = 2.5  # where another coordinator may lead by then
_FIRST_SIGN_S = 1.0  # within which a server that is not stopped sends the first bytes of its protocol
_LOOK_S = 0.5


class Attachment:
    """One stream, from hello to its end."""

    def __init__(self, address: str, stream: ClientStream) -> None:
        self._address = address
        self._stream = stream
        self._opened_at = stream.heard_at

    @classmethod
    async def open(
        cls,
        address: str,
        access: Access,
        hello: ag.AgentHello,
        on_message: Callable[[ag.CoordinatorMessage], None],
        turns: Turns | None = None,
    ) -> "Attachment":
        """Raises CoordinatorUnavailable when nobody is there."""
        parse = ag.CoordinatorMessage.FromString
        stream = await open_stream(address, _PATH, access, lambda payload: on_message(parse(payload)), turns)
        opened = cls(address, stream)
        opened.send(ag.AgentMessage(hello=hello))
        return opened

    def send(self, message: ag.AgentMessage) -> None:
        """At once. What is sent on a stream that has ended is lost."""
        self._stream.send(message.SerializeToString())

    async def ended(self, *, several: bool) -> StrataError:
        """Returns the error with which the stream broke, when it has. A coordinator that has not answered for long is
        given up; sooner where it is one of several."""
        while not self._stream.ended.done():
            await asyncio.wait([self._stream.ended], timeout=_LOOK_S)
            heard = self._stream.heard_at > self._opened_at
            limit_s = (_SILENCE_OF_SEVERAL_S if heard else _FIRST_SIGN_S) if several else _SILENCE_S
            if time.monotonic() - self._stream.heard_at > limit_s:
                self._stream.abort()
        self._stream.abort()
        return from_rpc_error(self._stream.ended.result(), address=self._address)

    async def leave(self, timeout_s: float) -> None:
        """After the coordinator has taken everything that was said."""
        await self._stream.leave(timeout_s)
