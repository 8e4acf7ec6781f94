"""The ties of this host's ranks, carried on the agent's own stream: a rank speaks to its agent over a Unix socket, and
what all of them say in one turn of the loop goes on as one message. Arrivals at one barrier are put together in it, and
come back as one release. The relay keeps nothing: when either end breaks, the ranks open their ties anew and say again
what was not answered.
"""

import asyncio
import itertools
import os
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc

from strata.client.stream import reachable
from strata.error_codes import rebuild_error
from strata.errors import CoordinatorUnavailable, Internal, StrataError
from strata.gate import Gate
from strata.grpcserver.call import Call
from strata.grpcserver.server import Server
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.status import to_status, to_text, to_trailers
from strata.protocol.words import lone_arrival
from strata.trust.proofs import Proofs

__all__ = ["Relay"]

Send = Callable[[ag.AgentMessage], None]


class Relay:
    """Serves `strata.ranks.Ranks` to the ranks of one host, all of them the agent's own user."""

    def __init__(self) -> None:
        self._send: Send | None = None
        self._attached = asyncio.Event()
        self._numbers = itertools.count(1)
        self._ranks: dict[int, Call] = {}
        self._outgoing = ag.AgentMessage()
        self._server = Server(Gate(Proofs(None)))  # by the kernel's word alone: nobody shows a token here
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self._tie)
        self._server.add_registered_method_handlers("strata.ranks.Ranks", {"Tie": handler})

    async def start(self, path: Path) -> None:
        """Listens at `path`, where only this user may connect."""
        await self._server.start_unix(_bound(path))

    async def stop(self) -> None:
        await self._server.stop(0.0)

    # --- the agent's stream

    def attach(self, send: Send) -> None:
        """From now on there is a coordinator to speak to."""
        self._send = send
        self._attached.set()

    def detach(self) -> None:
        """The stream broke: what was on it is lost, and every rank must say it again."""
        self._attached.clear()
        self._send = None
        self._outgoing = ag.AgentMessage()
        ranks, self._ranks = self._ranks, {}
        for call in ranks.values():
            _end(call, CoordinatorUnavailable("the agent has lost its coordinator"))

    def on_frames(self, frames: ag.TieFrames) -> None:
        """From the coordinator."""
        for frame in frames.frames:
            if frame.HasField("releases"):
                self._release(frame.releases)
            call = self._ranks.get(frame.tie)
            if call is None:
                continue
            if frame.payload:
                call.send_bytes(frame.payload)
            if frame.ended:
                del self._ranks[frame.tie]
                error = rebuild_error(frame.error_code, frame.error_message, hint=frame.error_hint)
                _end(call, error or Internal(frame.error_message))

    def _release(self, releases: ag.Releases) -> None:
        news = rk.RankNews(result=rk.BarrierResult(response=releases.alike))
        for tie, request_id, place in zip(releases.ties, releases.request_ids, releases.arrival_orders, strict=True):
            if (call := self._ranks.get(tie)) is not None:
                news.result.request_id, news.result.response.arrival_order = request_id, place
                call.send_bytes(news.SerializeToString())

    # --- ranks

    async def _tie(self, request_iterator: AsyncIterator[bytes], context: Call) -> None:
        await self._attached.wait()
        number = next(self._numbers)
        self._ranks[number] = context
        try:
            await context.listen(lambda payload: self._hear(number, payload))
        finally:
            if self._ranks.pop(number, None) is not None:
                self._say(ag.TieFrame(tie=number, ended=True))

    def _hear(self, number: int, payload: bytes) -> None:
        arrival = lone_arrival(payload)
        if arrival is None:
            self._say(ag.TieFrame(tie=number, payload=payload))
            return
        rank = ag.Arriving(
            tie=number,
            worker_id=arrival.worker_id,
            incarnation=arrival.incarnation,
            request_id=arrival.request_id,
        )
        for name in ("worker_id", "incarnation", "request_id"):
            arrival.ClearField(name)
        frames = self._outgoing.ties.frames
        if frames and frames[-1].HasField("arrivals") and frames[-1].arrivals.alike == arrival:
            frames[-1].arrivals.ranks.append(rank)
        else:  # only with the one before: nothing may overtake anything
            self._say(ag.TieFrame(arrivals=ag.Arrivals(alike=arrival, ranks=(rank,))))

    def _say(self, frame: ag.TieFrame) -> None:
        frames = self._outgoing.ties.frames
        if not frames:
            asyncio.get_running_loop().call_soon(self._flush)
        frames.append(frame)

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, ag.AgentMessage()
        if self._send is not None and outgoing.ties.frames:
            self._send(outgoing)


def _bound(path: Path) -> socket.socket:
    """An agent that was killed left its own socket there."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with reachable(path) as name:
        mask = os.umask(0o177)
        try:
            listener.bind(name)
        finally:
            os.umask(mask)
    return listener


def _end(call: Call, error: StrataError) -> None:
    call.end(to_status(error), to_text(error), to_trailers(error))
