"""A rank's tie between two roads, each of which is a relay whose other end is the test: whatever happens while a stream
is opened or left, the one that stays knows what the rank waits for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from strata.agent.relay import Relay
from strata.client.stream import UNIX
from strata.client.tie import Tie
from strata.errors import StrataError
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from tests.support.tied_rank import TiedRank


class Road:
    """`arrivals` are the steps that were said here and not taken back, on all ties."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.arrivals: set[int] = set()
        self.greeted = asyncio.Event()
        self.num_greeted = self.num_ended = 0
        self._relay = Relay()
        self._steps: dict[str, int] = {}

    async def start(self) -> None:
        self._relay.attach(self._on_message)
        await self._relay.start(self.path)

    async def stop(self) -> None:
        await self._relay.stop()

    def welcome(self, tie: int = 1) -> None:
        news = rk.RankNews(heard=1).SerializeToString()
        self._relay.on_frames(ag.TieFrames(frames=[ag.TieFrame(tie=tie, payload=news)]))

    def _on_message(self, message: ag.AgentMessage) -> None:
        for frame in message.ties.frames:
            words = rk.RankWords.FromString(frame.payload)
            self._steps |= {request.request_id: request.step for request in words.arrivals}
            self.arrivals |= {request.step for request in words.arrivals}
            self.arrivals -= {self._steps[request_id] for request_id in words.withdrawn}
            self.num_ended += frame.ended
            if words.HasField("hello"):
                self.num_greeted += 1
                self.greeted.set()


class Rank(TiedRank):
    def __init__(self, *roads: Road) -> None:
        super().__init__()
        self.tie = Tie(self, [f"{UNIX}{road.path}" for road in roads])

    def refused(self, error: StrataError) -> None:
        raise AssertionError(error)

    def arrive(self, step: int) -> pb.BarrierRequest:
        request = pb.BarrierRequest(worker_id="w", incarnation="i", barrier_id="b", step=step)
        self.tie.arrive(request, lambda told: None)
        return request


@pytest.fixture
async def roads(tmp_path: Path) -> AsyncIterator[tuple[Road, Road]]:
    """The agent, who is not there yet, and the coordinator."""
    home, straight = Road(tmp_path / "home"), Road(tmp_path / "straight")
    await straight.start()
    yield home, straight
    await straight.stop()
    await home.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  # turns of the loop are what it waits for
            await asyncio.sleep(0)


async def test_what_is_given_up_while_a_stream_is_opened_is_taken_back_there(roads: tuple[Road, Road]) -> None:
    _, straight = roads
    rank = Rank(straight)
    given_up = rank.arrive(1)
    rank.arrive(2)
    running = asyncio.create_task(rank.tie.run())
    await asyncio.wait_for(straight.greeted.wait(), 20)
    assert straight.arrivals == {1, 2}
    rank.tie.withdraw(given_up.request_id)
    straight.welcome()
    await until(lambda: straight.arrivals == {2})
    running.cancel()
    await asyncio.wait([running])


async def test_who_arrives_while_it_goes_back_to_its_agent_is_heard_there(roads: tuple[Road, Road]) -> None:
    home, straight = roads
    rank = Rank(home, straight)
    running = asyncio.create_task(rank.tie.run())
    await asyncio.wait_for(straight.greeted.wait(), 20)
    straight.welcome()
    await home.start()
    await asyncio.wait_for(home.greeted.wait(), 20)
    home.welcome()
    steps: set[int] = set()
    while not straight.num_ended:
        rank.arrive(len(steps))
        steps.add(len(steps))
        await asyncio.sleep(0)
    await until(lambda: home.arrivals == steps)
    assert home.num_greeted == 1
    running.cancel()
    await asyncio.wait([running])
