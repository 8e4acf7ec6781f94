"""The agents' stream: one per host, carrying batched heartbeats, process exits and barrier arrivals one way, desired
state and barrier results the other.
"""

import asyncio
from collections.abc import AsyncIterator

import grpc

from strata.coordinator.coordinator import Coordinator, Waiter
from strata.coordinator.rpc.answer import Context, check_token, fail
from strata.coordinator.scheduler import Scheduler
from strata.coordinator.state import commands as c
from strata.coordinator.state.barriers import Outcome, outcome_for
from strata.coordinator.state.membership import Caller
from strata.errors import BarrierFailed, InvalidArgument, StrataError
from strata.protocol import convert
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import agents_pb2_grpc as ag_grpc
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["AgentsService"]

_BEAT_INTERVAL_MS = 1_000
_OUTBOX = 10_000


class AgentsService(ag_grpc.AgentsServicer):
    """Implements `strata.agents.Agents`. Joining as an agent always needs the token: agents run commands."""

    def __init__(self, coordinator: Coordinator, scheduler: Scheduler, token: str) -> None:
        self._coordinator = coordinator
        self._scheduler = scheduler
        self._token = token

    async def Attach(  # type: ignore[override]  # grpc.aio's read/write style
        self, request_iterator: AsyncIterator[ag.AgentMessage], context: Context
    ) -> None:
        try:
            check_token(context, self._token, "joining as an agent")
            first = await context.read()
            if first is grpc.aio.EOF or first.WhichOneof("message") != "hello":
                raise InvalidArgument("an agent's first message must be its hello")
            session = _Session(self._coordinator, self._scheduler, first.hello)
            await session.run(context)
        except StrataError as error:
            await fail(context, error)


class _Session:
    """One agent's stream from hello to goodbye."""

    def __init__(self, coordinator: Coordinator, scheduler: Scheduler, hello: ag.AgentHello) -> None:
        self._coordinator = coordinator
        self._scheduler = scheduler
        self._state = coordinator.state
        self._hello = hello
        self._outbox: asyncio.Queue[ag.CoordinatorMessage] = asyncio.Queue(_OUTBOX)
        self._waiters: set[Waiter] = set()

    async def run(self, context: Context) -> None:
        await self._coordinator.ask(c.AttachAgent(spec=convert.from_agent_hello(self._hello)))
        lease_ms = int(self._state.config.agent_lease_s * 1e3)
        welcome = ag.AgentWelcome(term=self._state.term, heartbeat_interval_ms=_BEAT_INTERVAL_MS, lease_ms=lease_ms)
        self._outbox.put_nowait(ag.CoordinatorMessage(welcome=welcome))
        sender = asyncio.create_task(self._send(context))
        try:
            for process in self._hello.processes:
                await self._on_process(process)
            self._scheduler.attach(self._hello.agent_id, self._push)
            while (message := await context.read()) is not grpc.aio.EOF:
                await self._on_message(message)
        finally:
            self._scheduler.detach(self._hello.agent_id, self._push)
            sender.cancel()
            for waiter in self._waiters:
                self._coordinator.give_up(waiter)

    def _push(self, desired: ag.DesiredState) -> None:
        self._outbox.put_nowait(ag.CoordinatorMessage(desired=desired))

    async def _send(self, context: Context) -> None:
        while True:
            await context.write(await self._outbox.get())

    async def _on_message(self, message: ag.AgentMessage) -> None:
        match message.WhichOneof("message"):
            case "beat":
                await self._on_beat(message.beat)
            case "process":
                await self._on_process(message.process)
            case "barrier":
                self._on_barrier(message.barrier)
            case "goodbye":
                reason = message.goodbye.reason or "left"
                await self._coordinator.ask(c.LoseAgent(agent_id=self._hello.agent_id, reason=reason, left=True))
            case other:
                raise InvalidArgument(f"an agent cannot send {other!r} here")

    async def _on_beat(self, beat: ag.AgentBeat) -> None:
        now = self._coordinator.now()
        self._coordinator.meter.count("Attach.beat", 1 + len(beat.workers))
        self._state.agents.beat(self._hello.agent_id, beat.host, now)
        fenced = [request.worker_id for request in beat.workers if not self._beat_worker(request)]
        await self._coordinator.settled()
        self._outbox.put_nowait(ag.CoordinatorMessage(beat=ag.BeatAck(sequence=beat.sequence, fenced=fenced)))

    def _beat_worker(self, request: pb.HeartbeatRequest) -> bool:
        """False when the worker must be stopped: its place is taken, or it was never known."""
        now = self._coordinator.now()
        caller = Caller(worker_id=request.worker_id, incarnation=request.incarnation)
        try:
            worker = self._state.membership.authorize(caller, now)
        except StrataError:
            return False
        if isinstance(worker.report, pb.HeartbeatRequest):
            # The agent knows what the process uses; what it does, only the process itself says.
            request.status.CopyFrom(worker.report.status)
        self._state.membership.beat(worker, request, now)
        return True

    async def _on_process(self, process: ag.ProcessReport) -> None:
        self._coordinator.meter.count("Attach.process")
        await self._scheduler.report(self._hello.agent_id, self._hello.hostname, process)

    def _on_barrier(self, request: pb.BarrierRequest) -> None:
        """A callback instead of a task per arrival: a release of a thousand members is a thousand messages, no more."""
        self._coordinator.meter.count("Attach.barrier")
        try:
            waiter = self._coordinator.arrive(convert.from_barrier_request(request))
        except StrataError as error:
            self._answer(request, error)
            return
        self._waiters.add(waiter)

        def on_outcome(outcome: "asyncio.Future[Outcome]") -> None:
            self._waiters.discard(waiter)
            if outcome.cancelled():
                return
            self._coordinator.state.barriers.collected(waiter.place[0], request.worker_id)
            self._answer(request, outcome.exception() or outcome.result())

        waiter.outcome.add_done_callback(on_outcome)

    def _answer(self, request: pb.BarrierRequest, outcome: "Outcome | BaseException") -> None:
        result = ag.BarrierResult(worker_id=request.worker_id, request_id=request.request_id)
        try:
            if isinstance(outcome, BaseException):
                raise outcome
            result.response.CopyFrom(convert.to_barrier_response(outcome_for(outcome, request.worker_id)))
        except StrataError as error:
            result.error_code, result.error_message = error.code, error.message
            if isinstance(error, BarrierFailed):
                result.missing.extend(error.missing)
        self._outbox.put_nowait(ag.CoordinatorMessage(barrier=result))
