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

__all__ = ["Attachment"]

_PATH = "/strata.agents.Agents/Attach"
_SILENCE_S = 10.0  # every beat is answered: a stream that was silent so long leads nowhere


class Attachment:
    """One stream, from hello to its end."""

    def __init__(self, address: str, stream: ClientStream) -> None:
        self._address = address
        self._stream = stream

    @classmethod
    async def open(
        cls,
        address: str,
        token: str,
        hello: ag.AgentHello,
        on_message: Callable[[ag.CoordinatorMessage], None],
        turns: Turns | None = None,
    ) -> "Attachment":
        """Raises CoordinatorUnavailable when nobody is there."""
        parse = ag.CoordinatorMessage.FromString
        stream = await open_stream(address, _PATH, token, lambda payload: on_message(parse(payload)), turns)
        opened = cls(address, stream)
        opened.send(ag.AgentMessage(hello=hello))
        return opened

    def send(self, message: ag.AgentMessage) -> None:
        """At the end of this turn of the loop. What is sent on a stream that has ended is lost."""
        self._stream.send(message.SerializeToString())

    def check_alive(self) -> None:
        """Gives up a coordinator that has not answered for long."""
        if time.monotonic() - self._stream.heard_at > _SILENCE_S:
            self._stream.abort()

    async def ended(self) -> StrataError:
        """Returns the error with which the stream broke, when it has."""
        end = await asyncio.shield(self._stream.ended)
        self._stream.abort()
        return from_rpc_error(end, address=self._address)

    async def leave(self, timeout_s: float) -> None:
        """After the coordinator has taken everything that was said."""
        await self._stream.leave(timeout_s)
