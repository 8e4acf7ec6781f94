"""The agents' stream against a real server in this process, by grpcio's client."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from strata.config import Settings
from strata.coordinator.server import CoordinatorServer
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import agents_pb2_grpc as ag_grpc
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import coordinator_pb2_grpc as pb_grpc
from strata.token import ensure_token
from strata.types.workers import MemberState


class Cluster:
    """A coordinator and channels to it."""

    def __init__(self, settings: Settings, server: CoordinatorServer, channel: grpc.aio.Channel) -> None:
        self._token = ensure_token(settings)
        self._server = server
        self.workers: Any = pb_grpc.CoordinatorStub(channel)
        self._agents: Any = ag_grpc.AgentsStub(channel)

    async def attach(self, agent_id: str) -> Any:
        """An open stream that was welcomed."""
        stream = self._agents.Attach(metadata=(("authorization", f"Bearer {self._token}"),))
        await stream.write(
            ag.AgentMessage(hello=ag.AgentHello(agent_id=agent_id, incarnation="i", hostname="h", slots=1))
        )
        assert (await stream.read()).WhichOneof("message") == "welcome"
        return stream

    def agent_state(self, agent_id: str) -> MemberState:
        assert self._server.coordinator is not None
        agents = self._server.coordinator.state.agents
        return agents.pulses.standing(agent_id, agents.agents[agent_id].state)

    async def eventually(self, agent_id: str, state: MemberState) -> None:
        async with asyncio.timeout(5):
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


async def next_barrier(stream: Any) -> Any:
    """Desired state comes on the same stream, whenever it changes."""
    while (message := await asyncio.wait_for(stream.read(), 5)).WhichOneof("message") != "barrier":
        pass
    return message.barrier


async def test_a_broken_stream_makes_a_suspect_until_it_is_back(cluster: Cluster) -> None:
    stream = await cluster.attach("a")
    assert cluster.agent_state("a") is MemberState.READY
    stream.cancel()
    await cluster.eventually("a", MemberState.SUSPECT)
    await cluster.attach("a")
    assert cluster.agent_state("a") is MemberState.READY


async def test_the_end_of_an_old_stream_says_nothing_of_a_newer_one(cluster: Cluster) -> None:
    old = await cluster.attach("a")
    new = await cluster.attach("a")
    old.cancel()
    await new.write(ag.AgentMessage(beat=ag.AgentBeat(sequence=7)))
    while (message := await asyncio.wait_for(new.read(), 5)).WhichOneof("message") != "beat":
        pass
    assert message.beat.sequence == 7
    assert cluster.agent_state("a") is MemberState.READY


async def test_every_member_is_told_its_own_place(cluster: Cluster) -> None:
    """Two members behind one agent, one behind another."""
    for worker_id in ("w0", "w1", "w2"):
        await cluster.workers.RegisterWorker(pb.WorkerInfo(worker_id=worker_id, task_id="t"))
    first, second = await cluster.attach("a"), await cluster.attach("b")
    for stream, worker_id in ((first, "w0"), (second, "w1"), (first, "w2")):
        request = pb.BarrierRequest(worker_id=worker_id, barrier_id="b", step=1, request_id=f"r-{worker_id}")
        await stream.write(ag.AgentMessage(barrier=request))
    results = [await next_barrier(stream) for stream in (first, first, second)]
    assert sorted((item.worker_id, item.request_id) for item in results) == [(w, f"r-{w}") for w in ("w0", "w1", "w2")]
    assert sorted(item.response.arrival_order for item in results) == [1, 2, 3]
    assert {(item.response.participants, item.response.released, item.error_code) for item in results} == {
        (3, True, "")
    }


async def test_a_refused_arrival_is_told_to_its_member_alone(cluster: Cluster) -> None:
    stream = await cluster.attach("a")
    await stream.write(ag.AgentMessage(barrier=pb.BarrierRequest(worker_id="ghost", barrier_id="b", request_id="r")))
    result = await next_barrier(stream)
    assert (result.worker_id, result.request_id) == ("ghost", "r")
    assert (result.error_code, result.error_message) == ("unknown_worker", "worker 'ghost' is not registered")


async def test_a_stream_that_breaks_takes_its_arrivals_back(cluster: Cluster) -> None:
    for worker_id in ("w0", "w1"):
        await cluster.workers.RegisterWorker(pb.WorkerInfo(worker_id=worker_id, task_id="t"))
    first, second = await cluster.attach("a"), await cluster.attach("b")
    arrival = pb.BarrierRequest(worker_id="w0", barrier_id="b", step=1, request_id="r0")
    await first.write(ag.AgentMessage(barrier=arrival))
    first.cancel()
    await cluster.eventually("a", MemberState.SUSPECT)
    await second.write(
        ag.AgentMessage(barrier=pb.BarrierRequest(worker_id="w1", barrier_id="b", step=1, request_id="r1"))
    )
    again = await cluster.attach("a")
    await again.write(ag.AgentMessage(barrier=arrival))
    assert (await next_barrier(again)).response.arrival_order == 2
    assert (await next_barrier(second)).response.arrival_order == 1
