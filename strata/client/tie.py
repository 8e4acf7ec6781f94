"""A rank's tie to its coordinator: one stream, opened anew whenever it breaks, at the rank's agent where there is one,
straight to the coordinator otherwise. What was not answered is said again on the next stream, and counts once.
"""

import asyncio
import contextlib
import random
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from strata.client.client_stream import ClientStream
from strata.client.stream import UNIX, open_stream
from strata.error_codes import rebuild_error
from strata.errors import (
    CoordinatorUnavailable,
    DeadlineExceeded,
    Fenced,
    Internal,
    StrataError,
    Unavailable,
    UnknownWorker,
)
from strata.grpcserver.wire import Turns
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.status import from_rpc_error
from strata.trust.access import OPEN, Access

__all__ = ["OnResult", "Rank", "Tie"]

_PATH = "/strata.ranks.Ranks/Tie"
_WELCOME_S = 5.0  # within which an agent or a coordinator that is there answers the hello
_SILENCE_S = 10.0  # every beat is answered: a stream that was silent so long leads nowhere
_SILENCE_OF_SEVERAL_S = 2.5  # where another coordinator may lead by then
_FIRST_SIGN_S = 1.0  # within which one of several that is not stopped sends the first bytes of its protocol
_AGENT_SILENCE_S = 3.0  # by an agent that stands still: the rank must be heard before its agent is lost, and it with it
_BACK_S = 1.0  # how often a rank whose agent was away looks whether it is back
_LEAVE_S = 1.0
_STEADY_S = 1.0  # a stream that held so long is opened again at once
_MIN_BEAT_S = 0.02  # however often the state changes
_FIRST_PAUSE_S = 0.05
_MAX_PAUSE_S = 0.3

OnResult = Callable[[pb.BarrierResponse | StrataError], None]


class Rank(Protocol):
    """Whose tie it is. `refused` is called on a thread of its own and may take its time; the others may not."""

    def hello(self) -> rk.RankHello: ...
    def beat(self) -> pb.HeartbeatRequest: ...
    def hear(self, news: rk.RankNews) -> None: ...
    def refused(self, error: StrataError) -> None: ...


class Tie:
    """Lives on one event loop. `roads` are addresses: the agent's socket, if there is one, is preferred to those of
    coordinators. `patience_s` is how long arrivals wait while nobody answers on any of them."""

    def __init__(
        self,
        rank: Rank,
        roads: Sequence[str],
        *,
        access: Access = OPEN,
        beat_s: float = 1.0,
        patience_s: float = 600.0,
        turns: Turns | None = None,
    ) -> None:
        self._rank = rank
        self._roads = roads
        self._home = roads[0] if roads[0].startswith(UNIX) and len(roads) > 1 else None
        self._several = len(roads) - (self._home is not None) > 1
        self._access = access
        self._beat_s = beat_s
        self._patience_s = patience_s
        self._turns = turns
        self._stream: ClientStream | None = None
        self._road = self._shunned = ""
        self._arrivals: dict[str, tuple[pb.BarrierRequest, OnResult]] = {}
        self._unheard: dict[int, asyncio.Future[bool]] = {}
        self._sequence = 0
        self._meeting, self._since = uuid.uuid4().hex, 0  # where it was released last, and its arrivals after that
        self._told = (0, 0)  # the newest release that came before it was durable: its term, its record
        self._due = asyncio.Event()
        self._error: StrataError = CoordinatorUnavailable("the coordinator was not reached yet")
        self._over: StrataError | None = None  # after which nothing more is said

    # --- what a rank says

    def arrive(self, request: pb.BarrierRequest, on_result: OnResult) -> None:
        """Arrives at a barrier; `on_result` hears once how it ended. A request without an id gets one here: ranks that
        were released together and go on alike have the same, and no rank has one twice."""
        if self._over is not None:
            on_result(self._over)
            return
        if not request.request_id:
            self._since += 1
            request.request_id = f"{self._meeting}.{self._since}"
        self._arrivals[request.request_id] = (request, on_result)
        if self._stream is not None:
            self._stream.send(rk.RankWords(arrivals=(request,)).SerializeToString())

    def withdraw(self, request_id: str) -> None:
        """Nobody waits for this barrier any more."""
        if self._arrivals.pop(request_id, None) is not None and self._stream is not None:
            self._stream.send(rk.RankWords(withdrawn=(request_id,)).SerializeToString())

    def beat_soon(self) -> None:
        """Something changed that must not wait for the next beat."""
        self._due.set()

    async def beat(self) -> bool:
        """Beats now, or as soon as there is a stream. False when it broke before anybody took notice."""
        if self._over is not None:
            raise self._over
        if self._stream is not None:
            self._stream.send(self._words(awaited=True).SerializeToString())
        number = self._sequence if self._stream is not None else self._sequence + 1
        heard: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._unheard[number] = heard
        return await heard

    @property
    def fileno(self) -> int | None:
        """Of the open stream's socket."""
        return None if self._stream is None else self._stream.fileno()

    def _words(self, *, awaited: bool = False) -> rk.RankWords:
        self._sequence += 1
        return rk.RankWords(beat=self._rank.beat(), sequence=self._sequence, awaited=awaited)

    # --- the stream

    async def run(self) -> None:
        """Until it is cancelled, or the rank's place was given to somebody else."""
        beating = asyncio.create_task(self._beat_on())
        try:
            await self._keep()
        finally:
            beating.cancel()
            self._over = self._over or Unavailable("this worker's connection to its coordinator is closed")
            self._fail(self._over)
            if self._stream is not None:
                await self._stream.leave(_LEAVE_S)

    async def _keep(self) -> None:
        away_since, pause = time.monotonic(), _FIRST_PAUSE_S
        while self._over is None:
            began = time.monotonic()
            stream = await self._open_any()
            if stream is None and began - away_since > self._patience_s:
                self._fail(self._error)
            while stream is not None:
                self._stream = stream
                self._due.set()  # what changed while there was no stream
                stream = await self._stay(stream)
                away_since = time.monotonic()
            self._stream = None
            if time.monotonic() - began > _STEADY_S:
                pause = _FIRST_PAUSE_S
                continue
            await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311  # jitter
            pause = min(pause * 2, _MAX_PAUSE_S)

    async def _open_any(self) -> ClientStream | None:
        for road in sorted(self._roads, key=lambda road: road == self._shunned):
            stream = await self._open(road)
            if stream is not None:
                self._shunned = ""
            if stream is not None or self._over is not None:
                return stream
        return None

    async def _open(self, road: str) -> ClientStream | None:
        """A stream on which the rank was welcomed. What it still waits for has been said there."""
        welcome = asyncio.get_running_loop().create_future()
        on_message = partial(self._on_message, welcome)
        try:
            stream = await open_stream(road, _PATH, self._access, on_message, self._turns)
        except Unavailable as error:
            self._error = error
            return None
        words = self._words()
        words.hello.CopyFrom(self._rank.hello())
        words.hello.told_term, words.hello.told_record = self._told
        words.arrivals.extend(request for request, _ in self._arrivals.values())
        said = set(self._arrivals)
        stream.send(words.SerializeToString())
        opened_at = stream.heard_at
        if self._several and road != self._home:
            await asyncio.wait([welcome, stream.ended], timeout=_FIRST_SIGN_S, return_when=asyncio.FIRST_COMPLETED)
        if stream.heard_at > opened_at or not self._several or road == self._home:
            await asyncio.wait([welcome, stream.ended], timeout=_WELCOME_S, return_when=asyncio.FIRST_COMPLETED)
        if welcome.done():
            later = [request for key, (request, _) in self._arrivals.items() if key not in said]
            gone = said - self._arrivals.keys()  # given up meanwhile, or answered on the other stream
            if later or gone:
                stream.send(rk.RankWords(arrivals=later, withdrawn=gone).SerializeToString())
            self._road = road
            return stream
        stream.abort()
        if stream.ended.done():
            await self._on_end(stream, road)
        else:
            self._error = CoordinatorUnavailable(f"{road} does not answer")
        return None

    async def _stay(self, stream: ClientStream) -> ClientStream | None:
        """Returns when the stream has ended; or with a better one, when it does not lead by the preferred road."""
        home = self._home
        while not stream.ended.done():
            away = home is not None and self._road != home
            await asyncio.wait([stream.ended], timeout=_BACK_S if away else None)
            if home is not None and not stream.ended.done() and (better := await self._open(home)) is not None:
                self._stream = better  # what is said from now on is said there
                await stream.leave(_LEAVE_S)
                return better
        stream.abort()
        for heard in self._unheard.values():
            heard.set_result(False)
        self._unheard.clear()
        await self._on_end(stream, self._road)
        return None

    async def _on_end(self, stream: ClientStream, road: str) -> None:
        error = from_rpc_error(stream.ended.result(), address=road)
        self._error = error
        if isinstance(error, Unavailable | DeadlineExceeded | Internal):
            return
        if isinstance(error, Fenced):
            self._over = error
        elif not isinstance(error, UnknownWorker):
            self._fail(error)
        await asyncio.to_thread(self._rank.refused, error)

    def _fail(self, error: StrataError) -> None:
        arrivals, self._arrivals = self._arrivals, {}
        for _, on_result in arrivals.values():
            on_result(error)
        unheard, self._unheard = self._unheard, {}
        for heard in unheard.values():
            heard.set_exception(error)

    # --- the pulse

    async def _beat_on(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._beat_s):
                    await self._due.wait()
            self._due.clear()
            stream = self._stream
            if stream is None:
                continue
            stream.send(self._words().SerializeToString())
            if time.monotonic() - stream.heard_at > self._patience_with(self._road):
                self._shunned = self._road
                stream.abort()
            await asyncio.sleep(_MIN_BEAT_S)

    def _patience_with(self, road: str) -> float:
        if road == self._home:
            return _AGENT_SILENCE_S
        return _SILENCE_OF_SEVERAL_S if self._several else _SILENCE_S

    # --- what a rank hears

    def _on_message(self, welcome: "asyncio.Future[None]", payload: bytes) -> None:
        news = rk.RankNews.FromString(payload)
        if news.HasField("result"):
            self._on_result(news.result)
            return
        if not welcome.done():
            welcome.set_result(None)
        for sequence in [sequence for sequence in self._unheard if sequence <= news.heard]:
            self._unheard.pop(sequence).set_result(True)
        self._rank.hear(news)

    def _on_result(self, result: rk.BarrierResult) -> None:
        error = _refusal(result) if result.error_code else None
        if isinstance(error, Unavailable):  # it stops, or leads no more: said again to whoever is next
            return
        waiting = self._arrivals.pop(result.request_id, None)
        if waiting is None:  # it was answered on an earlier stream, or given up
            return
        request, on_result = waiting
        response = result.response
        if response.record:
            self._told = max(self._told, (response.term, response.record))
        if response.meeting and not (self._arrivals and self._waits_also_at(request)):
            self._meeting, self._since = response.meeting, 0
        on_result(error or response)

    def _waits_also_at(self, request: pb.BarrierRequest) -> bool:
        """Whether another thread waits at the same barrier: it will be told the same meeting, after which the count
        would begin once more."""
        place = request.barrier_id, request.step
        return any((other.barrier_id, other.step) == place for other, _ in self._arrivals.values())


def _refusal(result: rk.BarrierResult) -> StrataError:
    code, message = result.error_code, result.error_message
    return rebuild_error(code, message, hint=result.error_hint, missing=tuple(result.missing)) or Internal(message)
