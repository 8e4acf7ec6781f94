"""The agents' stream: one per host, carrying measurements, process exits and the ties of its ranks; desired state comes
back on it, and what those ranks must hear.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.rpc.answer import Context, fail
from strata.coordinator.rpc.beats import take_measurement
from strata.coordinator.rpc.ties import RankTie, Ties
from strata.coordinator.scheduling.scheduler import Scheduler
from strata.coordinator.state import commands as c
from strata.errors import Busy, InvalidArgument, StrataError
from strata.protocol import convert
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import agents_pb2_grpc as ag_grpc
from strata.protocol.generated import ranks_pb2 as rk

__all__ = ["AgentsService"]

_BEAT_INTERVAL_MS = 1_000
_UNHANDLED = 10_000  # of an agent's reports, while one waits for the disk


class AgentsService(ag_grpc.AgentsServicer):
    """Implements `strata.agents.Agents`."""

    def __init__(self, coordinator: Coordinator, scheduler: Scheduler, ties: Ties) -> None:
        self._coordinator = coordinator
        self._scheduler = scheduler
        self._ties = ties

    async def Attach(self, request_iterator: AsyncIterator[ag.AgentMessage], context: Context) -> None:
        try:
            first = await context.read()
            if first is grpc.aio.EOF or first.WhichOneof("message") != "hello":
                raise InvalidArgument("an agent's first message must be its hello")
            session = _Session(self._coordinator, self._scheduler, self._ties, first.hello)
            await session.run(context)
        except StrataError as error:
            await fail(context, error)


class _Session:
    """One agent's stream from hello to goodbye. Beats and ties are handled as they come; what must wait for the
    disk before the next of its kind (reports of processes, the goodbye) queues up for the session's own task."""

    __slots__ = (
        "_carried",
        "_context",
        "_coordinator",
        "_hello",
        "_outgoing",
        "_reports",
        "_scheduler",
        "_state",
        "_ties",
    )

    def __init__(self, coordinator: Coordinator, scheduler: Scheduler, ties: Ties, hello: ag.AgentHello) -> None:
        self._coordinator = coordinator
        self._scheduler = scheduler
        self._state = coordinator.state
        self._hello = hello
        self._reports: asyncio.Queue[ag.AgentMessage] = asyncio.Queue(_UNHANDLED)
        self._ties = ties
        self._carried: dict[int, RankTie] = {}
        self._outgoing = ag.CoordinatorMessage()

    async def run(self, context: Context) -> None:
        await self._coordinator.ask(c.AttachAgent(spec=convert.from_agent_hello(self._hello)))
        self._context: Context = context
        lease_ms = int(self._state.config.agent_lease_s * 1e3)
        welcome = ag.AgentWelcome(term=self._state.term, heartbeat_interval_ms=_BEAT_INTERVAL_MS, lease_ms=lease_ms)
        context.send(ag.CoordinatorMessage(welcome=welcome))
        try:
            for process in self._hello.processes:
                await self._on_process(process)
            self._scheduler.attach(self._hello.agent_id, self._push)
            async with asyncio.TaskGroup() as group:
                reports = group.create_task(self._handle_reports())
                await context.listen(self._on_message)
                await self._reports.join()
                reports.cancel()
        except* StrataError as errors:
            raise errors.exceptions[0] from None
        finally:
            if self._scheduler.detach(self._hello.agent_id, self._push):
                self._state.agents.suspect(self._hello.agent_id)
            for tie in self._carried.values():
                tie.close(broken=True)

    def _push(self, desired: ag.DesiredState) -> None:
        self._context.send(ag.CoordinatorMessage(desired=desired))

    def _on_message(self, message: ag.AgentMessage) -> None:
        match message.WhichOneof("message"):
            case "ties":
                self._coordinator.meter.count("Tie", len(message.ties.frames))
                for frame in message.ties.frames:
                    self._on_frame(frame)
            case "beat":
                self._on_beat(message.beat)
            case "process" | "goodbye":
                self._queue(message)
            case other:
                raise InvalidArgument(f"an agent cannot send {other!r} here")

    def _queue(self, message: ag.AgentMessage) -> None:
        try:
            self._reports.put_nowait(message)
        except asyncio.QueueFull:
            raise Busy(f"{_UNHANDLED} reports of agent {self._hello.agent_id} wait for the disk") from None

    async def _handle_reports(self) -> None:
        while True:
            message = await self._reports.get()
            if message.WhichOneof("message") == "process":
                await self._on_process(message.process)
            else:
                reason = message.goodbye.reason or "left"
                await self._coordinator.ask(c.LoseAgent(agent_id=self._hello.agent_id, reason=reason, left=True))
            self._reports.task_done()

    def _on_beat(self, beat: ag.AgentBeat) -> None:
        now = self._coordinator.now()
        self._coordinator.meter.count("Attach.beat", 1 + len(beat.workers))
        self._state.agents.beat(self._hello.agent_id, beat.host, now)
        for request in beat.workers:
            with contextlib.suppress(StrataError):  # it is out, or not in yet: desired state says what is to be done
                take_measurement(self._state, self._hello.agent_id, request, now)
        ack = ag.CoordinatorMessage(beat=ag.BeatAck(sequence=beat.sequence))
        self._coordinator.when_settled(lambda error: None if error else self._context.send(ack))

    async def _on_process(self, process: ag.ProcessReport) -> None:
        self._coordinator.meter.count("Attach.process")
        await self._scheduler.report(self._hello.agent_id, self._hello.hostname, process)

    # --- the ties that it carries

    def _on_frame(self, frame: ag.TieFrame) -> None:
        number = frame.tie
        tie = self._carried.get(number)
        if tie is None and frame.payload:
            send, end = partial(self._send_frame, number), partial(self._end_tie, number)
            tie = self._carried[number] = self._ties.carried(self._hello.agent_id, send, end)
        if tie is None:
            return
        try:
            if frame.payload:
                tie.hear(rk.RankWords.FromString(frame.payload))
        except StrataError as error:
            tie.close()
            self._end_tie(number, error)
        except DecodeError:
            tie.close()
            self._end_tie(number, InvalidArgument("a rank's words cannot be parsed"))
        if frame.ended and self._carried.pop(number, None) is not None:
            tie.close()

    def _send_frame(self, number: int, payload: bytes) -> None:
        self._frames().add(tie=number, payload=payload)

    def _end_tie(self, number: int, error: StrataError) -> None:
        self._carried.pop(number, None)
        self._frames().add(
            tie=number, ended=True, error_code=error.code, error_message=error.message, error_hint=error.hint
        )

    def _frames(self) -> Any:
        """What goes to the ranks of this host in this turn of the loop leaves as one message."""
        if not self._outgoing.ties.frames:
            asyncio.get_running_loop().call_soon(self._flush)
        return self._outgoing.ties.frames

    def _flush(self) -> None:
        self._context.send(self._outgoing)
        self._outgoing = ag.CoordinatorMessage()
