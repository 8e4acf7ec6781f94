"""The agents' stream: one per host, carrying measurements, process exits and the ties of its ranks; desired state comes
back on it, and what those ranks must hear.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from functools import partial
from itertools import groupby
from operator import methodcaller

import grpc
from google.protobuf.message import DecodeError

from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.rpc.answer import Context, fail
from strata.coordinator.rpc.beats import take_measurement
from strata.coordinator.rpc.carried import CarriedTies
from strata.coordinator.rpc.ties import Ties
from strata.coordinator.rpc.together import Gathering
from strata.coordinator.scheduling.scheduler import Scheduler
from strata.coordinator.state import commands as c
from strata.errors import Busy, InvalidArgument, PermissionDenied, StrataError
from strata.protocol import convert
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import agents_pb2_grpc as ag_grpc
from strata.trust.proofs import Proofs
from strata.trust.table import Admission, admit
from strata.trust.who import Who

__all__ = ["AgentsService"]

_BEAT_INTERVAL_MS = 1_000
_kind = methodcaller("WhichOneof", "message")
_UNHANDLED = 10_000  # of an agent's reports, while one waits for the disk


class AgentsService(ag_grpc.AgentsServicer):
    """Implements `strata.agents.Agents`."""

    def __init__(
        self, coordinator: Coordinator, scheduler: Scheduler, ties: Ties, gathering: Gathering, proofs: Proofs
    ) -> None:
        self._coordinator = coordinator
        self._proofs = proofs
        self._scheduler = scheduler
        self._ties = ties
        self._gathering = gathering

    async def Attach(self, request_iterator: AsyncIterator[ag.AgentMessage], context: Context) -> None:
        try:
            first = await context.read()
            if first is grpc.aio.EOF or first.WhichOneof("message") != "hello":
                raise InvalidArgument("an agent's first message must be its hello")
            self._check_own(first.hello, context)
            carried = CarriedTies(
                self._ties,
                self._gathering,
                first.hello.agent_id,
                context.send_bytes,
                takes_news=first.hello.takes_news,
            )
            check = partial(self._check_own, first.hello, context)
            await _Session(self._coordinator, self._scheduler, carried, first.hello, context, check).run()
        except StrataError as error:
            await fail(context, error)

    def _check_own(self, hello: ag.AgentHello, context: Context) -> None:
        """An agent's credential is good for that agent, and as long as nobody revokes it."""
        admission = context.caller
        assert isinstance(admission, Admission)
        if not admission.visitor.token_id:
            return
        answer = admit("/strata.agents.Agents/Attach", self._proofs.holder(admission.visitor.token_id))
        if isinstance(answer, StrataError):
            raise answer
        if answer.visitor.who is Who.AGENT and answer.visitor.agent_id != hello.agent_id:
            raise PermissionDenied(
                f"this credential is not of agent {hello.agent_id[:80]!r}",
                hint="A join token is exchanged first: `strata agent --join`.",
            )


class _Session:
    """One agent's stream from hello to goodbye. Beats and ties are handled as they come; what must wait for the
    disk before the next of its kind (reports of processes, notices, the goodbye) queues up for the session's own
    task."""

    def __init__(
        self,
        coordinator: Coordinator,
        scheduler: Scheduler,
        carried: CarriedTies,
        hello: ag.AgentHello,
        context: Context,
        check: Callable[[], None],
    ) -> None:
        self._check = check
        self._coordinator = coordinator
        self._scheduler = scheduler
        self._state = coordinator.state
        self._carried = carried
        self._hello = hello
        self._context = context
        self._reports: asyncio.Queue[ag.AgentMessage] = asyncio.Queue(_UNHANDLED)

    async def run(self) -> None:
        self._coordinator.check_leads()
        await self._coordinator.ask(c.AttachAgent(spec=convert.from_agent_hello(self._hello)))
        await self._on_notice(self._hello.notice)
        lease_ms = int(self._state.config.agent_lease_s * 1e3)
        welcome = ag.AgentWelcome(
            term=self._state.term,
            heartbeat_interval_ms=_BEAT_INTERVAL_MS,
            lease_ms=lease_ms,
            takes_beats=True,
            takes_crowds=True,
        )
        self._context.send(ag.CoordinatorMessage(welcome=welcome))
        try:
            await self._on_processes(list(self._hello.processes))
            self._scheduler.attach(self._hello.agent_id, self._push)
            async with asyncio.TaskGroup() as group:
                reports = group.create_task(self._handle_reports())
                await self._context.listen_bytes(self._hear)
                await self._reports.join()
                reports.cancel()
        except* StrataError as errors:
            raise errors.exceptions[0] from None
        finally:
            if self._scheduler.detach(self._hello.agent_id, self._push):
                self._state.agents.suspect(self._hello.agent_id)
            self._carried.close()

    def _push(self, desired: ag.DesiredState) -> None:
        self._context.send(ag.CoordinatorMessage(desired=desired))

    def _hear(self, payload: bytes) -> None:
        if self._carried.hear_known(payload):
            return
        try:
            message = ag.AgentMessage.FromString(payload)
        except DecodeError:
            raise InvalidArgument("an agent's message cannot be parsed") from None
        self._on_message(message)
        if message.HasField("ties"):
            self._carried.note_known(payload, message.ties)

    def _on_message(self, message: ag.AgentMessage) -> None:
        match message.WhichOneof("message"):
            case "ties":
                self._carried.on_frames(message.ties)
            case "beat":
                self._on_beat(message.beat)
            case "process" | "goodbye" | "notice":
                self._queue(message)
            case other:
                raise InvalidArgument(f"an agent cannot send {other!r} here")

    def _queue(self, message: ag.AgentMessage) -> None:
        try:
            self._reports.put_nowait(message)
        except asyncio.QueueFull:
            raise Busy(f"{_UNHANDLED} reports of agent {self._hello.agent_id} wait for the disk") from None

    async def _handle_reports(self) -> None:
        """Neighbours that tell of processes wait for the disk together."""
        while True:
            messages = [await self._reports.get()]
            while not self._reports.empty():
                messages.append(self._reports.get_nowait())
            for kind, alike in groupby(messages, _kind):
                await self._on_reports(kind, list(alike))
            for _ in messages:
                self._reports.task_done()

    async def _on_reports(self, kind: str | None, messages: list[ag.AgentMessage]) -> None:
        if kind == "process":
            await self._on_processes([message.process for message in messages])
            return
        for message in messages:
            if kind == "notice":
                await self._on_notice(message.notice)
            else:
                reason = message.goodbye.reason or "left"
                await self._coordinator.ask(c.LoseAgent(agent_id=self._hello.agent_id, reason=reason, left=True))

    def _on_beat(self, beat: ag.AgentBeat) -> None:
        self._coordinator.check_leads()
        self._check()
        now = self._coordinator.now()
        self._coordinator.meter.count("Attach.beat", 1 + len(beat.workers))
        self._state.agents.beat(self._hello.agent_id, beat, now)
        self._scheduler.hangs.hear_stopped(self._hello.agent_id, beat.stopped, now.monotonic)
        for request in beat.workers:
            with contextlib.suppress(StrataError):  # it is out, or not in yet: desired state says what is to be done
                take_measurement(self._state, self._hello.agent_id, request, now)
        ack = ag.CoordinatorMessage(beat=ag.BeatAck(sequence=beat.sequence))
        self._coordinator.when_settled(lambda error: None if error else self._context.send(ack))

    async def _on_processes(self, processes: list[ag.ProcessReport]) -> None:
        self._coordinator.meter.count("Attach.process", len(processes))
        await self._scheduler.report(self._hello.agent_id, self._hello.hostname, *processes)

    async def _on_notice(self, notice: ag.AgentNotice) -> None:
        deadline = notice.deadline if notice.HasField("deadline") else None
        drain = c.DrainAgent(agent_id=self._hello.agent_id, reason=notice.reason, deadline=deadline, noticed=True)
        await self._coordinator.ask(drain)
