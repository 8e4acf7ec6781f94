"""Barriers under any schedule of arrivals, withdrawals, broken streams, processes that take a rank's place and restarts
of the coordinator: a real one, real relays of two hosts, real ties. `--schedules 10000` plays 500 of them.
"""

import asyncio
import random
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path

import grpc
import pytest
import uvloop

from strata.client.stream import UNIX
from strata.client.tie import Tie
from strata.config import Settings
from strata.coordinator.server import CoordinatorServer
from strata.coordinator.state.outcomes import Outcome
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import coordinator_pb2_grpc as pb_grpc
from strata.trust.token import ensure_token
from tests.support.barrier_book import BARRIERS, SIZE, Arrival, Book, Told, key_of
from tests.support.ports import free_ports
from tests.support.relay_host import RelayHost
from tests.support.tied_rank import TiedRank

ON_HOSTS = 6  # ranks, three on each of two hosts; the others come straight
STEPS = 60
PATIENCE_S = 30.0

_NAMES = [f"w{rank}" for rank in range(SIZE)]


class Process(TiedRank):
    """A rank's process, with its tie. `over` when it was ended, or somebody has its place."""

    def __init__(self, worker_id: str, incarnation: str, roads: tuple[str, ...]) -> None:
        super().__init__(worker_id, incarnation)
        self.over = False
        self.arrivals: list[Arrival] = []
        self.tie = Tie(self, roads, beat_s=0.2)
        self._running = asyncio.create_task(self.tie.run())

    def break_stream(self) -> None:
        if self.tie._stream is not None:
            self.tie._stream.abort()

    async def fenced(self) -> None:
        await asyncio.wait_for(asyncio.shield(self._running), PATIENCE_S)

    async def end(self) -> None:
        self.over = True
        self._running.cancel()
        await asyncio.wait([self._running])


class Schedule:
    """One random course of events, and the book that every answer is checked against."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.settings = Settings(data_dir=folder / "data", grpc_port=free_ports(1)[0], heartbeat_timeout=120)
        self.address = f"127.0.0.1:{self.settings.grpc_port}"
        self.book = Book()
        self.processes: dict[str, Process] = {}
        self.ghosts: list[Process] = []
        self._server = CoordinatorServer(self.settings)
        self._folder = folder

    # --- the cluster

    async def start(self) -> None:
        await self._start_server()
        token = ensure_token(self.settings)
        self.hosts = [RelayHost(f"a{n}", self._folder / f"a{n}.sock", self.address, token) for n in range(2)]
        for host in self.hosts:
            await host.start()
        for name in _NAMES:
            await self._begin(name)
        await self.quiet()

    async def stop(self) -> None:
        for process in [*self.processes.values(), *self.ghosts]:
            await process.end()
        for host in self.hosts:
            await host.stop()
        await self._server.stop()

    async def _start_server(self) -> None:
        self._server = CoordinatorServer(self.settings)
        await self._server.start()
        assert self._server.coordinator is not None
        self._server.coordinator.listen(self.book.on_event)

    async def _begin(self, name: str, incarnation: str = "") -> None:
        """A process in this rank; a new one is registered first."""
        rank = _NAMES.index(name)
        host = self.hosts[rank % 2] if rank < ON_HOSTS else None
        if not incarnation:
            incarnation = uuid.uuid4().hex
            agent_id = f"a{rank % 2}" if host else ""
            info = pb.WorkerInfo(worker_id=name, task_id="t", incarnation=incarnation, agent_id=agent_id)
            async with grpc.aio.insecure_channel(self.address) as channel:
                await pb_grpc.CoordinatorStub(channel).RegisterWorker(info, wait_for_ready=True, timeout=PATIENCE_S)
        roads = (f"{UNIX}{host.path}", self.address) if host else (self.address,)
        self.processes[name] = Process(name, incarnation, roads)

    async def quiet(self) -> None:
        """All that was said before was heard, and all that was decided by then was told."""
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(2):
                for process in self.processes.values():
                    while not await process.tie.beat():
                        pass

    # --- what happens

    async def run(self) -> None:
        happenings = self._happenings()
        weights = [weight for _, weight in happenings]
        for _ in range(STEPS):
            ((happen, _),) = self.random.choices(happenings, weights)
            await happen()
            for _ in range(self.random.choice((0, 0, 0, 1, 3, 10))):
                await asyncio.sleep(0)
        await self._finish()

    def _happenings(self) -> list[tuple[Callable[[], Coroutine[None, None, None]], int]]:
        return [
            (self._some_arrive, 40),
            (self._one_arrives, 20),
            (self._one_withdraws, 10),
            (self._a_stream_breaks, 6),
            (self._a_host_breaks, 3),
            (self._a_host_starts_anew, 1),
            (self._a_process_takes_a_place, 3),
            (self._a_script_runs_again, 3),
            (self._the_coordinator_restarts, 1),
            (self.quiet, 6),
        ]

    def arrive(self, name: str, terms: pb.BarrierRequest) -> None:
        process = self.processes[name]
        request = pb.BarrierRequest(worker_id=name, incarnation=process.incarnation)
        request.MergeFrom(terms)
        arrival = Arrival(name, request, len(self.book.ends))
        self.book.arrivals.append(arrival)
        process.arrivals.append(arrival)

        def on_result(told: Told) -> None:
            arrival.told.append(told)
            if not process.over:
                arrival.gone_at = min(arrival.gone_at, self._num_decided())

        process.tie.arrive(request, on_result)

    def _num_decided(self) -> int:
        """Ends that the book has, and those that are told before they are durable."""
        assert self._server.coordinator is not None
        ahead = [event for _, event in self._server.coordinator._unpublished if isinstance(event, Outcome)]
        return len(self.book.ends) + len(ahead)

    async def _some_arrive(self) -> None:
        """All who do not wait there."""
        terms = self.random.choice(BARRIERS)
        free = [name for name in _NAMES if not self._waits(name, terms)]
        for name in self.random.sample(free, self.random.choice((len(free), self.random.randint(0, len(free))))):
            self.arrive(name, terms)

    async def _one_arrives(self) -> None:
        """Somebody who may wait there already, in another thread."""
        self.arrive(self.random.choice(_NAMES), self.random.choice(BARRIERS))

    async def _one_withdraws(self) -> None:
        waiting = [item for process in self.processes.values() for item in process.arrivals if item.waits]
        if waiting:
            arrival = self.random.choice(waiting)
            arrival.withdrawn = True
            self.processes[arrival.worker_id].tie.withdraw(arrival.request.request_id)
            if self.random.random() < 0.5:
                await self.quiet()
                arrival.gone_at = len(self.book.ends)

    async def _a_stream_breaks(self) -> None:
        self.processes[self.random.choice(_NAMES)].break_stream()

    async def _a_host_breaks(self) -> None:
        self.random.choice(self.hosts).break_stream()

    async def _a_host_starts_anew(self) -> None:
        host = self.random.choice(self.hosts)
        await host.stop()
        await host.start()

    async def _a_process_takes_a_place(self) -> None:
        """The one before has died, or goes on and must be told that it is out."""
        name = self.random.choice(_NAMES)
        before = self.processes[name]
        if self.random.random() < 0.5:
            await before.end()
        else:
            before.over = True
            self.ghosts.append(before)
        await self._begin(name)

    async def _a_script_runs_again(self) -> None:
        """In the same rank, with its name and incarnation."""
        name = self.random.choice(_NAMES)
        before = self.processes[name]
        await before.end()
        await self._begin(name, before.incarnation)

    async def _the_coordinator_restarts(self) -> None:
        await self._server.stop()
        await self._start_server()

    async def _finish(self) -> None:
        """Who has nothing to do comes to where others wait, until nobody waits."""
        for _ in range(20):
            await self.quiet()
            left = [item for process in self.processes.values() for item in process.arrivals if item.waits]
            if not left:
                break
            terms = next(terms for terms in BARRIERS if key_of(terms) == left[0].key)
            size = terms.expected_participants or SIZE
            here = {item.worker_id for item in left if item.key == left[0].key}
            others = [name for name in _NAMES if name not in here]
            for name in others[: size - len(here) % size]:
                self.arrive(name, terms)
        else:
            raise AssertionError(f"these are not answered: {[(item.worker_id, item.request) for item in left]}")
        for ghost in self.ghosts:
            await ghost.fenced()

    def _waits(self, name: str, terms: pb.BarrierRequest) -> bool:
        return any(item.waits and item.key == key_of(terms) for item in self.processes[name].arrivals)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("seed", range(metafunc.config.getoption("--schedules") // 20))


def test_every_arrival_is_answered_once_and_by_its_own_round(seed: int, tmp_path: Path) -> None:
    """On the coordinator's own loop. Python 3.11's loses whom it accepts in the turn in which a server is closed."""
    uvloop.run(_play(seed, tmp_path))


async def _play(seed: int, tmp_path: Path) -> None:
    schedule = Schedule(seed, tmp_path)
    await schedule.start()
    try:
        await schedule.run()
        living, ghosts = schedule.processes.values(), schedule.ghosts
        schedule.book.check(
            [item for process in living for item in process.arrivals],
            [item for process in ghosts for item in process.arrivals],
        )
    finally:
        await schedule.stop()
