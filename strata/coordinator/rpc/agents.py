"""The agents' stream: one per host, carrying batched heartbeats, process exits and barrier arrivals one way, desired
state and barrier results the other.
"""

import asyncio
from collections.abc import AsyncIterator

import grpc

from strata.cluster.events import BarrierReleased
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.engine.waiters import Waiter
from strata.coordinator.rpc.answer import Context, fail
from strata.coordinator.rpc.releases import ReleaseWriter
from strata.coordinator.scheduling.scheduler import Scheduler
from strata.coordinator.state import commands as c
from strata.coordinator.state.membership import Caller
from strata.coordinator.state.outcomes import Outcome, outcome_for
from strata.errors import BarrierFailed, Busy, InvalidArgument, StrataError
from strata.protocol import convert
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import agents_pb2_grpc as ag_grpc
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["AgentsService"]

_BEAT_INTERVAL_MS = 1_000
_UNHANDLED = 10_000  # of an agent's reports, while one waits for the disk


class AgentsService(ag_grpc.AgentsServicer):
    """Implements `strata.agents.Agents`."""

    def __init__(self, coordinator: Coordinator, scheduler: Scheduler) -> None:
        self._coordinator = coordinator
        self._scheduler = scheduler
        self._releases = ReleaseWriter()

    async def Attach(self, request_iterator: AsyncIterator[ag.AgentMessage], context: Context) -> None:
        try:
            first = await context.read()
            if first is grpc.aio.EOF or first.WhichOneof("message") != "hello":
                raise InvalidArgument("an agent's first message must be its hello")
            session = _Session(self._coordinator, self._scheduler, self._releases, first.hello)
            await session.run(context)
        except StrataError as error:
            await fail(context, error)


class _Session:
    """One agent's stream from hello to goodbye. Beats and arrivals are handled as they come; what must wait for the
    disk before the next of its kind (reports of processes, the goodbye) queues up for the session's own task."""

    __slots__ = (
        "_context",
        "_coordinator",
        "_hello",
        "_releases",
        "_reports",
        "_scheduler",
        "_state",
        "_waiters",
    )

    def __init__(
        self, coordinator: Coordinator, scheduler: Scheduler, releases: ReleaseWriter, hello: ag.AgentHello
    ) -> None:
        self._coordinator = coordinator
        self._scheduler = scheduler
        self._state = coordinator.state
        self._hello = hello
        self._reports: asyncio.Queue[ag.AgentMessage] = asyncio.Queue(_UNHANDLED)
        self._releases = releases
        self._waiters: set[Waiter] = set()

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
            for waiter in self._waiters:
                self._coordinator.give_up(waiter)

    def _push(self, desired: ag.DesiredState) -> None:
        self._context.send(ag.CoordinatorMessage(desired=desired))

    def _on_message(self, message: ag.AgentMessage) -> None:
        match message.WhichOneof("message"):
            case "barrier":
                self._on_barrier(message.barrier)
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
        fenced = [request.worker_id for request in beat.workers if not self._beat_worker(request)]
        ack = ag.CoordinatorMessage(beat=ag.BeatAck(sequence=beat.sequence, fenced=fenced))
        self._coordinator.when_settled(lambda error: None if error else self._context.send(ack))

    def _beat_worker(self, request: pb.HeartbeatRequest) -> bool:
        """False when the worker must be stopped: its place is taken, or it was never known."""
        now = self._coordinator.now()
        caller = Caller(worker_id=request.worker_id, incarnation=request.incarnation)
        try:
            worker = self._state.membership.authorize(caller, now)
        except StrataError:
            return False
        known = self._state.membership.pulses.of(worker.worker_id).report
        if isinstance(known, pb.HeartbeatRequest):
            # The agent knows what the process uses; what it does, only the process itself says.
            request.status.CopyFrom(known.status)
        self._state.membership.pulses.beat(worker.worker_id, request, now)
        return True

    async def _on_process(self, process: ag.ProcessReport) -> None:
        self._coordinator.meter.count("Attach.process")
        await self._scheduler.report(self._hello.agent_id, self._hello.hostname, process)

    def _on_barrier(self, request: pb.BarrierRequest) -> None:
        self._coordinator.meter.count("Attach.barrier")
        try:
            waiter = self._coordinator.arrive(convert.from_barrier_request(request), self._tell)
        except StrataError as error:
            self._answer(request.worker_id, request.request_id, error)
        else:
            self._waiters.add(waiter)

    def _tell(self, waiter: Waiter, outcome: Outcome | BaseException) -> None:
        self._waiters.discard(waiter)
        self._state.barriers.collected(waiter.key, waiter.worker_id)
        self._answer(waiter.worker_id, waiter.request_id, outcome)

    def _answer(self, worker_id: str, request_id: str, outcome: Outcome | BaseException) -> None:
        if isinstance(outcome, BarrierReleased):
            self._context.send_bytes(self._releases.write(outcome, worker_id, request_id))
            return
        result = ag.BarrierResult(worker_id=worker_id, request_id=request_id)
        try:
            if isinstance(outcome, BaseException):
                raise outcome
            outcome_for(outcome, worker_id)
        except StrataError as error:
            result.error_code, result.error_message = error.code, error.message
            if isinstance(error, BarrierFailed):
                result.missing.extend(error.missing)
        self._context.send(ag.CoordinatorMessage(barrier=result))
