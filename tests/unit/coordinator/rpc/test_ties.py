"""A rank's stream against a real server in this process: by grpcio's client, for it is plain gRPC, and by our own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from strata.client.tie import Tie
from strata.clock import SystemClock
from strata.config import Settings
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.rpc.ties import Ties
from strata.coordinator.server import CoordinatorServer
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.errors import BarrierBroken, Fenced, StrataError, UnknownWorker
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import coordinator_pb2_grpc as pb_grpc
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.generated import ranks_pb2_grpc as rk_grpc
from strata.trust.proofs import Proofs
from strata.types.workers import MemberState, WorkerSpec
from tests.support.memory_journal import MemoryJournal
from tests.support.tied_rank import TiedRank


class Cluster:
    def __init__(self, server: CoordinatorServer, channel: grpc.aio.Channel) -> None:
        self.server = server
        self.workers: Any = pb_grpc.CoordinatorStub(channel)
        self.ranks: Any = rk_grpc.RanksStub(channel)

    async def register(self, *worker_ids: str) -> None:
        for worker_id in worker_ids:
            await self.workers.RegisterWorker(pb.WorkerInfo(worker_id=worker_id, task_id="t", incarnation="i"))

    async def lose(self, worker_id: str) -> None:
        await self.workers.DeregisterWorker(pb.WorkerInfo(worker_id=worker_id, incarnation="i"))

    def state_of(self, worker_id: str) -> MemberState:
        assert self.server.coordinator is not None
        membership = self.server.coordinator.state.membership
        return membership.pulses.standing(worker_id, membership.workers[worker_id].state)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    server = CoordinatorServer(Settings(data_dir=tmp_path, grpc_port=0))
    await server.start()
    async with grpc.aio.insecure_channel(server.address) as channel:
        yield Cluster(server, channel)
    await server.stop()


def arrival(worker_id: str, request_id: str = "r") -> pb.BarrierRequest:
    return pb.BarrierRequest(worker_id=worker_id, barrier_id="b", step=1, request_id=request_id)


async def tied(cluster: Cluster, member: TiedRank) -> tuple[Tie, "asyncio.Task[None]"]:
    tie = Tie(member, (cluster.server.address,), beat_s=0.05)
    running = asyncio.create_task(tie.run())
    async with asyncio.timeout(20):
        assert await tie.beat()
    return tie, running


async def answer(tie: Tie, request: pb.BarrierRequest) -> "asyncio.Future[pb.BarrierResponse | StrataError]":
    told: asyncio.Future[pb.BarrierResponse | StrataError] = asyncio.get_running_loop().create_future()
    tie.arrive(request, told.set_result)
    return told


async def until(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  # nobody has an event for it
            await asyncio.sleep(0.005)


async def test_stock_grpc_speaks_it(cluster: Cluster) -> None:
    await cluster.register("w0")
    stream = cluster.ranks.Tie()
    hello = rk.RankHello(worker_id="w0", incarnation="i")
    await stream.write(rk.RankWords(hello=hello, beat=pb.HeartbeatRequest(), sequence=4, arrivals=[arrival("w0")]))
    assert (await asyncio.wait_for(stream.read(), 20)).heard == 4
    result = (await asyncio.wait_for(stream.read(), 20)).result
    assert (result.request_id, result.response.arrival_order) == ("r", 1)
    await stream.done_writing()
    assert await stream.code() is grpc.StatusCode.OK
    assert cluster.state_of("w0") is MemberState.READY


async def test_members_meet_and_a_loss_is_told_to_all_at_once(cluster: Cluster) -> None:
    await cluster.register("w0", "w1", "w2")
    members = [TiedRank(f"w{number}") for number in range(3)]
    ties = [await tied(cluster, member) for member in members]
    told = [await answer(tie, arrival(member.worker_id)) for member, (tie, _) in zip(members, ties, strict=True)]
    results = await asyncio.wait_for(asyncio.gather(*told), 20)
    assert sorted(item.arrival_order for item in results if isinstance(item, pb.BarrierResponse)) == [1, 2, 3]
    waits = await answer(ties[0][0], arrival("w0", "second"))
    assert await ties[0][0].beat()  # it was heard: the loss comes over another connection
    await cluster.lose("w2")
    broken = await asyncio.wait_for(waits, 20)
    assert isinstance(broken, BarrierBroken)
    assert broken.missing == ("w2",)
    for member in members[:2]:
        await until(lambda member=member: any(news.lost for news in member.heard))
        (lost,) = [loss.worker_id for news in member.heard for loss in news.lost]
        assert lost == "w2"
        assert member.heard[-1].generation == 4
    await asyncio.wait_for(ties[2][1], 20)  # its own tie is over: another would be refused, too
    assert isinstance(members[2].errors[0], Fenced)
    refused = await asyncio.wait_for(await answer(ties[2][0], arrival("w2", "late")), 20)
    assert isinstance(refused, Fenced)
    for _, running in ties[:2]:
        running.cancel()


async def test_an_arrival_that_nobody_waits_for_is_taken_back(cluster: Cluster) -> None:
    await cluster.register("w0", "w1")
    (first, running), (second, other) = await tied(cluster, TiedRank("w0")), await tied(cluster, TiedRank("w1"))
    await answer(first, arrival("w0", "gone"))
    first.withdraw("gone")
    assert await first.beat()
    waits = await answer(second, arrival("w1"))
    assert await second.beat()
    assert not waits.done()
    again = await answer(first, arrival("w0", "again"))
    result = await asyncio.wait_for(again, 20)
    assert isinstance(result, pb.BarrierResponse)
    assert result.arrival_order == 2
    running.cancel()
    other.cancel()


async def test_a_broken_stream_makes_a_suspect_and_the_next_one_says_everything_again(cluster: Cluster) -> None:
    await cluster.register("w0", "w1")
    tie, running = await tied(cluster, TiedRank("w0"))
    waits = await answer(tie, arrival("w0"))
    assert await tie.beat()
    assert tie._stream is not None
    tie._stream.abort()
    await until(lambda: cluster.state_of("w0") is MemberState.SUSPECT)
    await until(lambda: cluster.state_of("w0") is MemberState.READY)
    other, finishing = await tied(cluster, TiedRank("w1"))
    last = await asyncio.wait_for(await answer(other, arrival("w1")), 20)
    first = await asyncio.wait_for(waits, 20)
    assert isinstance(first, pb.BarrierResponse)
    assert isinstance(last, pb.BarrierResponse)
    assert (first.arrival_order, last.arrival_order) == (1, 2)
    running.cancel()
    finishing.cancel()


async def test_a_rank_that_nobody_knows_is_told_so_and_comes_in_once_it_is_registered(cluster: Cluster) -> None:
    member = TiedRank("w0")
    tie = Tie(member, (cluster.server.address,), beat_s=0.05)
    running = asyncio.create_task(tie.run())
    waits = await answer(tie, arrival("w0"))
    await until(lambda: member.errors)
    assert isinstance(member.errors[0], UnknownWorker)
    await cluster.register("w0")
    assert isinstance(await asyncio.wait_for(waits, 20), pb.BarrierResponse)
    running.cancel()


@pytest.mark.parametrize("words", [rk.RankWords(), rk.RankWords(arrivals=[arrival("w0")])])
async def test_a_stream_without_a_hello_is_refused(cluster: Cluster, words: rk.RankWords) -> None:
    await cluster.register("w0")
    stream = cluster.ranks.Tie()
    await stream.write(words)
    assert await stream.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_nobody_arrives_for_another(cluster: Cluster) -> None:
    await cluster.register("w0", "w1")
    stream = cluster.ranks.Tie()
    await stream.write(rk.RankWords(hello=rk.RankHello(worker_id="w0", incarnation="i"), arrivals=[arrival("w1")]))
    await asyncio.wait_for(stream.read(), 20)  # the welcome
    assert await stream.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_the_loss_of_a_process_does_not_end_the_tie_of_the_next() -> None:
    """A loss is told when it is durable; by then the next process may have joined and said its hello."""
    journal = MemoryJournal()
    coordinator = Coordinator(ClusterState(StateConfig()), journal, SystemClock())
    await coordinator.open()
    ties = Ties(coordinator, Proofs(None))
    sent: dict[str, list[bytes]] = {"old": [], "new": []}
    ended: list[tuple[str, StrataError]] = []

    def greet(incarnation: str) -> None:
        tie = ties.carried(1, "host", sent[incarnation].append, lambda error: ended.append((incarnation, error)))
        tie.hear(rk.RankWords(hello=rk.RankHello(worker_id="w0", incarnation=incarnation)))

    def join(incarnation: str) -> None:
        member = WorkerSpec(worker_id="w0", task_id="t", incarnation=incarnation, agent_id="host")
        coordinator.apply(c.RegisterWorker(spec=member))

    join("old")
    greet("old")
    journal.hold = True
    join("new")
    greet("new")
    assert not sent["new"]
    journal.flush()
    assert not ended
    assert not rk.RankNews.FromString(sent["new"][-1]).lost  # its welcome
