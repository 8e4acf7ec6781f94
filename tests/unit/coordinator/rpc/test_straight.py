"""Ranks that arrive straight and in one turn of the loop are heard together: each of them must get what it would have
got alone."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import grpc
import pytest

from strata.client.tie import Tie
from strata.cluster.events import BarrierReleased, Event
from strata.config import Settings
from strata.coordinator.server import CoordinatorServer
from strata.errors import BarrierBroken, InvalidArgument, StrataError
from strata.grpcserver.wire import Turns
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import coordinator_pb2_grpc as pb_grpc
from strata.protocol.generated import ranks_pb2 as rk
from tests.support.tied_rank import TiedRank

NUMBER = 30

Told = pb.BarrierResponse | StrataError


class Crowd:
    """Ranks of one task whose words of one turn leave together. `ends` are how their barriers ended."""

    def __init__(self, server: CoordinatorServer) -> None:
        turns = Turns()
        self.address = server.address
        self.ends: list[BarrierReleased] = []
        assert server.coordinator is not None
        server.coordinator.listen(self._on_event)
        self.ties = [Tie(TiedRank(f"w{rank}"), (server.address,), turns=turns) for rank in range(NUMBER)]
        self._running: list[asyncio.Task[None]] = []

    def _on_event(self, event: Event) -> None:
        if isinstance(event, BarrierReleased):
            self.ends.append(event)

    async def start(self) -> None:
        async with grpc.aio.insecure_channel(self.address) as channel:
            register = pb_grpc.CoordinatorStub(channel).RegisterWorker
            for rank in range(NUMBER):
                await register(pb.WorkerInfo(worker_id=f"w{rank}", task_id="t", incarnation="i"))
        self._running = [asyncio.create_task(tie.run()) for tie in self.ties]
        await self.beat()

    async def beat(self) -> None:
        """All that was said before was heard, and all that was told is durable."""
        async with asyncio.timeout(20):
            assert all(await asyncio.gather(*(tie.beat() for tie in self.ties)))

    async def stop(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.wait(self._running)

    def arrive(self, rank: int, request_id: str = "", *, expected: int = 0, step: int = 1) -> "asyncio.Future[Told]":
        """Without a request, with the one that its tie gives it."""
        told: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        request = pb.BarrierRequest(
            worker_id=f"w{rank}",
            barrier_id="b",
            step=step,
            request_id=request_id,
            incarnation="i",
            expected_participants=expected,
        )
        self.ties[rank].arrive(request, told.set_result)
        return told


@pytest.fixture
async def crowd(tmp_path: Path) -> AsyncIterator[Crowd]:
    server = CoordinatorServer(Settings(data_dir=tmp_path, grpc_port=0))
    await server.start()
    crowd = Crowd(server)
    await crowd.start()
    yield crowd
    await crowd.stop()
    await server.stop()


async def answers(*told: "asyncio.Future[Told]") -> list[Told]:
    return await asyncio.wait_for(asyncio.gather(*told), 20)


def places(told: list[Told]) -> list[int]:
    assert all(isinstance(item, pb.BarrierResponse) for item in told), told
    return [item.arrival_order for item in told if isinstance(item, pb.BarrierResponse)]


async def test_all_meet_at_the_same_barrier_again_and_again(crowd: Crowd) -> None:
    for number in range(4):
        told = await answers(*(crowd.arrive(rank, f"{rank}-{number}") for rank in range(NUMBER)))
        assert sorted(places(told)) == list(range(1, NUMBER + 1))


async def test_ranks_that_met_come_to_the_next_barrier_with_one_request(crowd: Crowd) -> None:
    """So a thousand arrivals are one record with one request. Who gave up in between is one ahead until they meet."""
    for step in (1, 2, 2, 3):
        told = await answers(*(crowd.arrive(rank, step=step) for rank in range(NUMBER)))
        assert sorted(places(told)) == list(range(1, NUMBER + 1))
    await crowd.beat()  # answered when all releases are durable
    assert [len(event.request_ids) for event in crowd.ends] == [NUMBER, 1, 1, 1]
    assert len({event.request_ids for event in crowd.ends}) == 4
    gone = pb.BarrierRequest(worker_id="w3", barrier_id="b", step=9, incarnation="i")
    crowd.ties[3].arrive(gone, lambda told: None)
    crowd.ties[3].withdraw(gone.request_id)
    for step in (4, 5):
        await answers(*(crowd.arrive(rank, step=step) for rank in range(NUMBER)))
    await crowd.beat()
    assert [len(event.request_ids) for event in crowd.ends[4:]] == [NUMBER, 1]


async def test_a_process_that_takes_a_rank_s_place_is_not_told_what_the_one_before_was(crowd: Crowd) -> None:
    """A script that runs twice in one rank has its name and incarnation both times, and comes to the same barriers."""
    for step in (1, 2):
        await answers(*(crowd.arrive(rank, step=step) for rank in range(NUMBER)))
    again = Tie(TiedRank("w0"), (crowd.address,))
    running = asyncio.create_task(again.run())
    for step in (1, 2):
        told: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        request = pb.BarrierRequest(worker_id="w0", barrier_id="b", step=step, incarnation="i")
        again.arrive(request, told.set_result)
        assert await asyncio.wait_for(again.beat(), 20)  # it was heard
        assert not told.done()
        others = await answers(*(crowd.arrive(rank, step=step) for rank in range(1, NUMBER)), told)
        assert sorted(places(others)) == list(range(1, NUMBER + 1))
    running.cancel()
    await asyncio.wait([running])


async def test_who_names_other_terms_is_refused_and_the_others_meet(crowd: Crowd) -> None:
    told = [crowd.arrive(rank, "r", expected=NUMBER) for rank in range(10)]
    told.append(crowd.arrive(10, "wrong", expected=7))
    told += [crowd.arrive(rank, "r", expected=NUMBER) for rank in range(11, NUMBER)]
    (refused,) = await answers(told.pop(10))
    assert isinstance(refused, InvalidArgument)
    last = crowd.arrive(10, "right", expected=NUMBER)
    assert sorted(places(await answers(*told, last))) == list(range(1, NUMBER + 1))


async def test_two_barriers_in_one_turn(crowd: Crowd) -> None:
    told = [crowd.arrive(rank, f"{rank}-{step}", step=step) for rank in range(NUMBER) for step in (1, 2)]
    assert sorted(places(await answers(*told))) == sorted([*range(1, NUMBER + 1)] * 2)


async def test_a_smaller_barrier_is_released_for_those_who_came_first(crowd: Crowd) -> None:
    told = await answers(*(crowd.arrive(rank, "r", expected=10) for rank in range(NUMBER)))
    assert sorted(places(told)) == sorted([*range(1, 11)] * 3)


async def test_one_that_takes_its_arrival_back_at_once_did_not_arrive(crowd: Crowd) -> None:
    told = [crowd.arrive(rank, "r") for rank in range(NUMBER)]
    crowd.ties[4].withdraw("r")
    await crowd.beat()
    assert not any(item.done() for item in told)
    told[4] = crowd.arrive(4, "again")
    found = places(await answers(*told))
    assert found[4] == NUMBER


async def test_one_whose_stream_breaks_at_once_says_it_again_and_counts_once(crowd: Crowd) -> None:
    told = [crowd.arrive(rank, "r") for rank in range(NUMBER - 1)]
    await asyncio.sleep(0)  # it leaves
    stream = crowd.ties[4]._stream
    assert stream is not None
    stream.abort()
    told.append(crowd.arrive(NUMBER - 1, "r"))
    assert sorted(places(await answers(*told))) == list(range(1, NUMBER + 1))


async def test_what_breaks_a_barrier_is_told_to_each(crowd: Crowd) -> None:
    told = [crowd.arrive(rank, f"r{rank}") for rank in range(NUMBER - 1)]
    await crowd.beat()
    async with grpc.aio.insecure_channel(crowd.address) as channel:
        deregister = pb_grpc.CoordinatorStub(channel).DeregisterWorker
        await deregister(pb.WorkerInfo(worker_id=f"w{NUMBER - 1}", incarnation="i"))
    broken = await answers(*told)
    assert all(isinstance(item, BarrierBroken) and item.missing == (f"w{NUMBER - 1}",) for item in broken)


async def test_words_that_cannot_be_parsed_end_the_stream(crowd: Crowd) -> None:
    async with grpc.aio.insecure_channel(crowd.address) as channel:
        stream: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream("/strata.ranks.Ranks/Tie")()
        await stream.write(rk.RankWords(hello=rk.RankHello(worker_id="w0", incarnation="i")).SerializeToString())
        await asyncio.wait_for(stream.read(), 20)
        await stream.write(b"\x22\x03\x0a\x7fx")
        assert await asyncio.wait_for(stream.code(), 20) is grpc.StatusCode.INVALID_ARGUMENT


async def test_threads_of_a_rank_that_wait_at_one_barrier_never_have_a_request_twice(crowd: Crowd) -> None:
    """Both are told the same meeting, by which the rank numbers its requests."""
    requests: list[str] = []

    def go_on(told: Told, step: int) -> None:
        request = pb.BarrierRequest(worker_id="w0", barrier_id="c", step=step, incarnation="i")
        crowd.ties[0].arrive(request, lambda told: None)
        requests.append(request.request_id)

    for step in (1, 2):
        request = pb.BarrierRequest(worker_id="w0", barrier_id="b", step=1, incarnation="i")
        crowd.ties[0].arrive(request, partial(go_on, step=step))
    await answers(*(crowd.arrive(rank) for rank in range(1, NUMBER)))
    await crowd.beat()
    assert len(requests) == len(set(requests)) == 2
