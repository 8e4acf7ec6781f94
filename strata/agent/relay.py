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
from pathlib import Path

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
from strata.protocol.tie_frames import order_part
from strata.protocol.words import OwnWords, lone_arrival, lone_beat, read_terms
from strata.trust.proofs import Proofs

__all__ = ["Relay"]

Send = Callable[[ag.AgentMessage], None]


class _Rank:
    """One rank's stream. Who it is, is known from its first arrival."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.worker_id = self.incarnation = ""
        self.own: OwnWords | None = None  # another one for another name

    def terms(self, payload: bytes) -> bytes | None:
        """What it says of a lone arrival without its own name. None if it says anything else."""
        known = self.own.taken_from(payload) if self.own is not None else None
        if known is not None and _can_be_read(known):
            return known
        arrival = lone_arrival(payload)
        if arrival is None:
            return None
        self.worker_id, self.incarnation = arrival.worker_id, arrival.incarnation
        self.own = OwnWords(self.worker_id, self.incarnation)
        arrival.ClearField("worker_id")
        arrival.ClearField("incarnation")
        return arrival.SerializeToString()


class Relay:
    """Serves `strata.ranks.Ranks` to the ranks of one host, all of them the agent's own user."""

    def __init__(self) -> None:
        self._send: Send | None = None
        self._attached = asyncio.Event()
        self._numbers = itertools.count(1)
        self._ranks: dict[int, _Rank] = {}  # by the numbers of their ties
        self._outgoing = ag.AgentMessage()
        self._arriving: dict[int, _Rank] = {}  # whom the last frame of it is about
        self._alike = b""  # what they all said
        self._known: tuple[list[OwnWords | None], bytes] = [], b""  # who arrived together last, and as a Company
        self._beats = HeldBeats()
        self._takes_beats = self._takes_crowds = False
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

    def attach(self, send: Send, *, takes_beats: bool = False, takes_crowds: bool = False) -> None:
        """From now on there is a coordinator to speak to. One of an older release is told beats or arrivals rank by
        rank."""
        self._send = send
        self._takes_beats, self._takes_crowds = takes_beats, takes_crowds
        self._attached.set()

    def detach(self) -> None:
        """The stream broke: what was on it is lost, and every rank must say it again."""
        self._attached.clear()
        self._send = None
        self._outgoing = ag.AgentMessage()
        self._arriving = {}
        self._beats.clear()
        ranks, self._ranks = self._ranks, {}
        for rank in ranks.values():
            _end(rank.call, CoordinatorUnavailable("the agent has lost its coordinator"))

    def on_frames(self, frames: ag.TieFrames) -> None:
        """From the coordinator."""
        for frame in frames.frames:
            if frame.HasField("releases"):
                self._release(frame.releases)
            if frame.HasField("news"):
                self._tell(frame.news)
            rank = self._ranks.get(frame.tie)
            if rank is None:
                continue
            if frame.payload:
                rank.call.send_bytes(frame.payload)
            if frame.ended:
                del self._ranks[frame.tie]
                self._beats.forget(frame.tie)
                error = rebuild_error(frame.error_code, frame.error_message, hint=frame.error_hint)
                _end(rank.call, error or Internal(frame.error_message))

    def _release(self, releases: ag.Releases) -> None:
        result = rk.BarrierResult(request_id=releases.request_id, response=releases.alike)
        alike = rk.RankNews(result=result).SerializeToString()
        for place, tie in enumerate(releases.ties, start=releases.first_order):
            if (rank := self._ranks.get(tie)) is not None:
                rank.call.send_bytes(alike + order_part(place))

    def _tell(self, news: ag.News) -> None:
        own = news.own or [b""] * len(news.ties)
        for tie, rest in zip(news.ties, own, strict=True):
            if (rank := self._ranks.get(tie)) is not None:
                rank.call.send_bytes(news.alike + rest)

    # --- ranks

    async def _tie(self, request_iterator: AsyncIterator[bytes], context: Call) -> None:
        await self._attached.wait()
        number = next(self._numbers)
        rank = self._ranks[number] = _Rank(context)
        try:
            await context.listen(lambda payload: self._hear(number, rank, payload))
        finally:
            if self._ranks.pop(number, None) is not None:
                if number in self._beats:  # its last words
                    self._say_beats()
                self._say(ag.TieFrame(tie=number, ended=True))
            self._beats.forget(number)

    def _hear(self, number: int, rank: _Rank, payload: bytes) -> None:
        if self._takes_beats and (beat := lone_beat(payload)) is not None:
            self._hold(number, beat)
            return
        alike = rank.terms(payload) if self._takes_crowds else None
        if alike is None:
            self._say(ag.TieFrame(tie=number, payload=payload))
            return
        if not self._arriving or alike != self._alike or number in self._arriving:  # else with the one before alone:
            self._say(ag.TieFrame(arrivals=ag.Arrivals(alike=alike)))  # nothing may overtake
            self._alike = alike
        self._arriving[number] = rank

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
        arriving, self._arriving = sorted(self._arriving.items()), {}
        if not arriving:
            return
        who = [rank.own for _, rank in arriving]
        if who != self._known[0]:
            ranks = [rank for _, rank in arriving]
            worker_ids, incarnations = [rank.worker_id for rank in ranks], [rank.incarnation for rank in ranks]
            company = ag.Company(ties=[tie for tie, _ in arriving], worker_ids=worker_ids, incarnations=incarnations)
            self._known = who, company.SerializeToString()
        self._outgoing.ties.frames[-1].arrivals.company = self._known[1]

    def _flush(self) -> None:
        self._close_company()
        outgoing, self._outgoing = self._outgoing, ag.AgentMessage()
        if self._send is not None and outgoing.ties.frames:
            self._send(outgoing)


def _can_be_read(terms: bytes) -> bool:
    try:
        read_terms(terms)
    except ValueError:
        return False
    return True


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
