"""An agent as far as its ranks' ties go: the real relay, and a stream that is opened anew when it breaks."""

import asyncio
import contextlib
from pathlib import Path

from strata.agent.relay import Relay
from strata.client.client_stream import ClientStream
from strata.client.stream import open_stream
from strata.errors import CoordinatorUnavailable
from strata.protocol.generated import agents_pb2 as ag
from strata.trust.access import Access

__all__ = ["RelayHost"]

_BEAT_S = 0.5


class RelayHost:
    """`path` is where its ranks find it."""

    def __init__(self, agent_id: str, path: Path, address: str, token: str) -> None:
        self.path = path
        self._agent_id = agent_id
        self._address = address
        self._access = Access(token=token)
        self._relay = Relay()
        self._stream: ClientStream | None = None
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._relay = Relay()
        await self._relay.start(self.path)
        self._running = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        assert self._running is not None
        self._running.cancel()
        await asyncio.wait([self._running])
        await self._relay.stop()

    def break_stream(self) -> None:
        if self._stream is not None:
            self._stream.abort()

    async def _keep(self) -> None:
        try:
            while True:
                with contextlib.suppress(CoordinatorUnavailable):
                    await self._attach()
                await asyncio.sleep(0.01)
        finally:
            self.break_stream()

    async def _attach(self) -> None:
        self._stream = stream = await open_stream(
            self._address, "/strata.agents.Agents/Attach", self._access, self._on_message
        )
        hello = ag.AgentHello(agent_id=self._agent_id, incarnation="i", hostname="h", slots=1, takes_news=True)
        stream.send(ag.AgentMessage(hello=hello).SerializeToString())
        try:
            while not stream.ended.done():
                await asyncio.wait([stream.ended], timeout=_BEAT_S)
                stream.send(ag.AgentMessage(beat=ag.AgentBeat()).SerializeToString())
        finally:
            stream.abort()
            self._relay.detach()

    def _on_message(self, payload: bytes) -> None:
        message, stream = ag.CoordinatorMessage.FromString(payload), self._stream
        assert stream is not None
        if message.HasField("welcome"):
            self._relay.attach(lambda said: stream.send(said.SerializeToString()), takes_beats=True, takes_crowds=True)
        elif message.HasField("ties"):
            self._relay.on_frames(message.ties)
