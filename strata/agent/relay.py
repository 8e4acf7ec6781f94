"""The ties of this host's ranks, carried on the agent's own stream: a rank speaks to its agent over a Unix socket, and
what all of them say in one turn of the loop goes on as one message. Arrivals at one barrier are put together in it, and
come back as one release; so are beats, which wait a moment for each other. The relay keeps nothing: when either end
breaks, the ranks open their ties anew and say again what was not answered.
"""

import asyncio
import itertools
import os
import socket
from collections.abc import AsyncIterator, Callable
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import grpc

from strata.agent.beats import HOLD_S, HeldBeats
from strata.client.stream import reachable
from strata.error_codes import rebuild_error
from strata.errors import CoordinatorUnavailable, Internal, StrataError
from strata.gate import Gate
from strata.grpcserver.call import Call
from strata.grpcserver.server import Server
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.status import to_status, to_text, to_trailers
from strata.protocol.words import lone_arrival, lone_beat
from strata.trust.proofs import Proofs

__all__ = ["Relay"]

Send = Callable[[ag.AgentMessage], None]


class _Arriving(NamedTuple):
    """What is a rank's own of its arrival."""

    tie: int
    worker_id: str
    incarnation: str
    request_id: str


class Relay:
    """Serves `strata.ranks.Ranks` to the ranks of one host, all of them the agent's own user."""

    def __init__(self) -> None:
        self._send: Send | None = None
        self._attached = asyncio.Event()
        self._numbers = itertools.count(1)
        self._ranks: dict[int, Call] = {}
        self._outgoing = ag.AgentMessage()
        self._arriving: list[_Arriving] = []  # whom the last frame of it is about
        self._beats = HeldBeats()
        self._takes_beats = False
        self._beats_due: asyncio.Handle | None = None
        self._server = Server(Gate(Proofs(None)))  # by the kernel's word alone: nobody shows a token here
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self._tie)
        self._server.add_registered_method_handlers("strata.ranks.Ranks", {"Tie": handler})

    async def start(self, path: Path) -> None:
        """Listens at `path`, where only this user may connect."""
        await self._server.start_unix(_bound(path))

    async def stop(self) -> None:
        await self._server.stop(0.0)

    # --- the agent's stream

    def attach(self, send: Send, *, takes_beats: bool = False) -> None:
        """From now on there is a coordinator to speak to. One of an older release takes beats only rank by rank."""
        self._send = send
        self._takes_beats = takes_beats
        self._attached.set()

    def detach(self) -> None:
        """The stream broke: what was on it is lost, and every rank must say it again."""
        self._attached.clear()
        self._send = None
        self._outgoing = ag.AgentMessage()
        self._arriving = []
        self._beats.clear()
        ranks, self._ranks = self._ranks, {}
        for call in ranks.values():
            _end(call, CoordinatorUnavailable("the agent has lost its coordinator"))

    def on_frames(self, frames: ag.TieFrames) -> None:
        """From the coordinator."""
        for frame in frames.frames:
            if frame.HasField("releases"):
                self._release(frame.releases)
            if frame.HasField("news"):
                self._tell(frame.news)
            call = self._ranks.get(frame.tie)
            if call is None:
                continue
            if frame.payload:
                call.send_bytes(frame.payload)
            if frame.ended:
                del self._ranks[frame.tie]
                self._beats.forget(frame.tie)
                error = rebuild_error(frame.error_code, frame.error_message, hint=frame.error_hint)
                _end(call, error or Internal(frame.error_message))

    def _release(self, releases: ag.Releases) -> None:
        news = rk.RankNews(result=rk.BarrierResult(response=releases.alike))
        for tie, request_id, place in zip(releases.ties, releases.request_ids, releases.arrival_orders, strict=True):
            if (call := self._ranks.get(tie)) is not None:
                news.result.request_id, news.result.response.arrival_order = request_id, place
                call.send_bytes(news.SerializeToString())

    def _tell(self, news: ag.News) -> None:
        own = news.own or [b""] * len(news.ties)
        for tie, rest in zip(news.ties, own, strict=True):
            if (call := self._ranks.get(tie)) is not None:
                call.send_bytes(news.alike + rest)

    # --- ranks

    async def _tie(self, request_iterator: AsyncIterator[bytes], context: Call) -> None:
        await self._attached.wait()
        number = next(self._numbers)
        self._ranks[number] = context
        try:
            await context.listen(lambda payload: self._hear(number, payload))
        finally:
            if self._ranks.pop(number, None) is not None:
                if number in self._beats:  # its last words
                    self._say_beats()
                self._say(ag.TieFrame(tie=number, ended=True))
            self._beats.forget(number)

    def _hear(self, number: int, payload: bytes) -> None:
        if self._takes_beats and (beat := lone_beat(payload)) is not None:
            self._hold(number, beat)
            return
        arrival = lone_arrival(payload)
        if arrival is None:
            self._say(ag.TieFrame(tie=number, payload=payload))
            return
        rank = _Arriving(number, arrival.worker_id, arrival.incarnation, arrival.request_id)
        for name in ("worker_id", "incarnation", "request_id"):
            arrival.ClearField(name)
        alike = arrival.SerializeToString()
        frames = self._outgoing.ties.frames
        if not self._arriving or frames[-1].arrivals.alike != alike:  # only with the one before: nothing may overtake
            self._say(ag.TieFrame(arrivals=ag.Arrivals(alike=alike)))
        self._arriving.append(rank)

    def _hold(self, number: int, beat: rk.RankWords) -> None:
        """Until the end of this turn of the loop, or a moment longer if it says nothing new."""
        loop, due = asyncio.get_running_loop(), self._beats_due
        if self._beats.add(number, beat):
            if due is not None:
                due.cancel()
            self._beats_due = loop.call_soon(self._say_beats)
        elif due is None:
            self._beats_due = loop.call_later(HOLD_S, self._say_beats)

    def _say_beats(self) -> None:
        if self._beats_due is not None:
            self._beats_due.cancel()
            self._beats_due = None
        for frame in self._beats.take():
            self._say(frame)

    def _say(self, frame: ag.TieFrame) -> None:
        frames = self._outgoing.ties.frames
        if not frames:
            asyncio.get_running_loop().call_soon(self._flush)
        self._close_company()
        frames.append(frame)

    def _close_company(self) -> None:
        """Those who have arrived are who the last frame is about. Who of them came first in this turn says nothing, so
        they stand by their ties: the same company is the same bytes."""
        arriving, self._arriving = sorted(self._arriving, key=attrgetter("tie")), []
        if arriving:
            ties, worker_ids, incarnations, request_ids = zip(*arriving, strict=True)
            company = ag.Company(ties=ties, worker_ids=worker_ids, incarnations=incarnations)
            arrivals = self._outgoing.ties.frames[-1].arrivals
            arrivals.company = company.SerializeToString()
            arrivals.request_ids.extend(request_ids)

    def _flush(self) -> None:
        self._close_company()
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
