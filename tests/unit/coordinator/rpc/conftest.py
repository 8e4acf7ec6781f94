"""A coordinator in this process, and agents that attach to it by grpcio's client."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from strata.config import Settings
from strata.coordinator.scheduling.progress import status_of
from strata.coordinator.server import CoordinatorServer
from strata.coordinator.state import commands as c
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import agents_pb2_grpc as ag_grpc
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import coordinator_pb2_grpc as pb_grpc
from strata.protocol.generated import ranks_pb2 as rk
from strata.trust.proofs import Proofs
from strata.trust.token import ensure_token
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus, incarnation_of, worker_id_of
from strata.types.workers import MemberState, WorkerSpec


class Cluster:
    """A coordinator and channels to it."""

    def __init__(self, settings: Settings, server: CoordinatorServer, channel: grpc.aio.Channel) -> None:
        self._token = ensure_token(settings)
        self.proofs = Proofs(self._token)
        self._server = server
        self.workers: Any = pb_grpc.CoordinatorStub(channel)
        self._agents: Any = ag_grpc.AgentsStub(channel)

    async def attach(self, agent_id: str, *, takes_news: bool = False) -> Any:
        """An open stream that was welcomed."""
        stream = self._agents.Attach(metadata=(("authorization", f"Bearer {self._token}"),))
        hello = ag.AgentHello(agent_id=agent_id, incarnation="i", hostname="h", slots=1, takes_news=takes_news)
        await stream.write(ag.AgentMessage(hello=hello))
        assert (await stream.read()).welcome.takes_beats
        return stream

    async def register(self, worker_id: str, agent_id: str) -> None:
        info = pb.WorkerInfo(worker_id=worker_id, task_id="t", incarnation="i", agent_id=agent_id)
        await self.workers.RegisterWorker(info)

    def start_rank(self, task_id: str, attempt: int, agent_id: str) -> str:
        """The only rank of a task, as the scheduler starts it and it registers; its incarnation."""
        assert self._server.coordinator is not None
        apply = self._server.coordinator.apply
        apply(c.SubmitTask(task_id=task_id, spec=TaskSpec(name="job", worker_count=1, entrypoint=("x",))))
        apply(c.ChangeTask(task_id=task_id, status=TaskStatus.RUNNING, reason="", attempt=attempt, course=TaskCourse()))
        incarnation = incarnation_of(task_id, attempt, 0)
        spec = WorkerSpec(
            worker_id=worker_id_of(task_id, 0), task_id=task_id, incarnation=incarnation, rank=0, agent_id=agent_id
        )
        apply(c.RegisterWorker(spec=spec))
        return incarnation

    def report(self, worker_id: str) -> pb.HeartbeatRequest:
        """What it said, and what was measured of it."""
        assert self._server.coordinator is not None
        membership = self._server.coordinator.state.membership
        usage = membership.pulses.of(worker_id).usage
        assert usage is None or isinstance(usage, pb.ResourceUsage)
        status = status_of(membership.workers[worker_id], membership.pulses)
        return pb.HeartbeatRequest(status=status, resources=usage)

    def suspect(self, worker_id: str) -> None:
        assert self._server.coordinator is not None
        self._server.coordinator.state.membership.suspect(worker_id, "i")

    @property
    def suspects(self) -> set[str]:
        assert self._server.coordinator is not None
        return self._server.coordinator.state.membership.pulses.suspects

    def agent_state(self, agent_id: str) -> MemberState:
        assert self._server.coordinator is not None
        agents = self._server.coordinator.state.agents
        return agents.pulses.standing(agent_id, agents.agents[agent_id].state)

    async def eventually(self, agent_id: str, state: MemberState) -> None:
        async with asyncio.timeout(60):
            while self.agent_state(agent_id) is not state:  # noqa: ASYNC110  # the server has no event for it
                await asyncio.sleep(0.005)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    settings = Settings(data_dir=tmp_path, grpc_port=0)
    server = CoordinatorServer(settings)
    await server.start()
    async with grpc.aio.insecure_channel(server.address) as channel:
        yield Cluster(settings, server, channel)
    await server.stop()


async def next_frame(stream: Any) -> Any:
    """The next frame of a tie, which comes alone."""
    (frame,) = await next_frames(stream)
    return frame


async def next_frames(stream: Any) -> list[Any]:
    """Of ties, in one message. Desired state comes on the same stream, whenever it changes."""
    while (message := await asyncio.wait_for(stream.read(), 5)).WhichOneof("message") != "ties":
        pass
    return list(message.ties.frames)


async def heard(stream: Any) -> None:
    """What was written before has been read."""
    await stream.write(ag.AgentMessage(beat=ag.AgentBeat(sequence=7)))
    while (message := await asyncio.wait_for(stream.read(), 5)).WhichOneof("message") != "beat":
        pass
    assert message.beat.sequence == 7


def words(tie: int, hello: str = "", proof: str = "", arrival: str = "", incarnation: str = "i") -> ag.AgentMessage:
    """One rank's words as its agent passes them on."""
    said = rk.RankWords()
    if hello:
        said.hello.worker_id, said.hello.proof = hello, proof
        said.hello.incarnation = incarnation
    if arrival:
        said.arrivals.add(worker_id=arrival, barrier_id="b", step=1, request_id=f"r-{arrival}")
    return ag.AgentMessage(ties=ag.TieFrames(frames=[ag.TieFrame(tie=tie, payload=said.SerializeToString())]))


def together(*ranks: tuple[int, str], **values: Any) -> ag.AgentMessage:
    """Arrivals that an agent has put together: tie, worker."""
    ties, worker_ids = zip(*ranks, strict=True)
    company = ag.Company(ties=ties, worker_ids=worker_ids, incarnations=["i"] * len(ranks))
    shared: dict[str, Any] = {"barrier_id": "b", "step": 1, "request_id": "r"} | values
    alike = pb.BarrierRequest(**shared).SerializeToString()
    arrivals = ag.Arrivals(alike=alike, company=company.SerializeToString())
    return ag.AgentMessage(ties=ag.TieFrames(frames=[ag.TieFrame(arrivals=arrivals)]))


async def host_of(cluster: Cluster, agent_id: str, *worker_ids: str, takes_news: bool = False) -> Any:
    """An agent's stream, with ties 1, 2, … of its ranks that were welcomed."""
    stream = await cluster.attach(agent_id, takes_news=takes_news)
    for tie, worker_id in enumerate(worker_ids, start=1):
        await stream.write(words(tie, hello=worker_id))
        assert (await next_frame(stream)).tie == tie
    return stream
