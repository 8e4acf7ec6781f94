"""What one rank costs the coordinator's loop, in CPU, by the size of its task: a cost is flat when a rank of 10,000
costs as much as one of 1,000. Everything that the loop runs is here, sockets and disk are not.

Eight ranks to a host, as `benchmarks/fleet.py` has them on real connections. `_us` are microseconds per rank or host,
`_ms` the longest time for which one call holds the loop.
"""

import asyncio
import gc
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from benchmarks.harness import Benchmark, Case, Target, ours
from strata.agent.beats import HeldBeats
from strata.clock import SystemClock
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.engine.snapshots import Snapshots
from strata.coordinator.engine.ticker import tick
from strata.coordinator.rpc.carried import CarriedTies
from strata.coordinator.rpc.ties import Ties
from strata.coordinator.rpc.together import Gathering
from strata.coordinator.scheduling.scheduler import Scheduler
from strata.coordinator.scheduling.sights import SLICE
from strata.coordinator.state import commands as c
from strata.coordinator.state.attempts import Vote
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.coordinator.state.membership import Caller
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.trust.proofs import Proofs
from strata.types.tasks import TaskSpec, TaskStatus, incarnation_of, worker_id_of
from strata.types.workers import AgentSpec
from tests.support.memory_journal import MemoryJournal

__all__ = ["BENCHMARK"]

_RANKS = 8  # of a host
_TURN = 50  # hosts that are heard in one turn of the loop
_ATTACHED = 16  # hosts whose agents come back
_TASK = "t"
_STATUS = pb.WorkerStatus(state=pb.WorkerStatus.TRAINING, current_step=10, step_time_s=0.5)


class _Host:
    """One agent's session, as rpc/agents.py has it, without its connection."""

    def __init__(self, number: int, scheduler: Scheduler, ties: Ties, gathering: Gathering) -> None:
        self.name = f"host-{number}"
        self.ranks = range(number * _RANKS, (number + 1) * _RANKS)
        self._scheduler = scheduler
        self.carried = CarriedTies(ties, gathering, self.name, self._hear, takes_news=True)
        self.num_told = 0

    def _hear(self, message: bytes) -> None:
        self.num_told += 1

    def push(self, desired: ag.DesiredState) -> None:
        self._hear(ag.CoordinatorMessage(desired=desired).SerializeToString())

    async def report(self, *ranks: int, **what: Any) -> None:
        """Of these ranks, or of all of its own."""
        said = [ag.ProcessReport(task_id=_TASK, attempt=1, rank=rank, **what) for rank in ranks or self.ranks]
        await self._scheduler.report(self.name, self.name, *said)

    def frames(self, make: Callable[[int], rk.RankWords]) -> ag.TieFrames:
        said = [(rank % _RANKS + 1, make(rank).SerializeToString()) for rank in self.ranks]
        return ag.TieFrames(frames=[ag.TieFrame(tie=tie, payload=words) for tie, words in said])

    def beats(self, sequence: int) -> ag.TieFrames:
        held = HeldBeats()  # as its relay puts them together
        for rank in self.ranks:
            words = rk.RankWords(beat=pb.HeartbeatRequest(status=_STATUS), sequence=sequence)
            words.beat.status.own_time_s = rank / 1e6
            held.add(rank % _RANKS + 1, words)
        return ag.TieFrames(frames=held.take())

    def arrivals(self, step: int) -> ag.TieFrames:
        names = [worker_id_of(_TASK, rank) for rank in self.ranks]
        incarnations = [incarnation_of(_TASK, 1, rank) for rank in self.ranks]
        company = ag.Company(ties=range(1, _RANKS + 1), worker_ids=names, incarnations=incarnations)
        alike = pb.BarrierRequest(barrier_id="b", step=step, request_id="r")  # as all have it who met before
        arrivals = ag.Arrivals(alike=alike.SerializeToString(), company=company.SerializeToString())
        return ag.TieFrames(frames=[ag.TieFrame(arrivals=arrivals)])


class _Costs:
    """Runs one task from its submission to its end and notes what each part of it costs."""

    def __init__(self, num_ranks: int) -> None:
        self._num_ranks = num_ranks
        self.found: dict[str, float] = {}

    async def open(self) -> None:
        state = ClusterState(StateConfig(worker_lease_s=3_600.0, agent_lease_s=3_600.0))
        self._coordinator = Coordinator(state, MemoryJournal(), SystemClock())
        self._state = state
        await self._coordinator.open()
        proofs = Proofs("token")
        self._secret = proofs.mint_secret(_TASK, 1)
        self._scheduler = Scheduler(self._coordinator, {}, proofs)
        ties = Ties(self._coordinator, proofs)
        gathering = Gathering(ties)
        self._hosts = [_Host(number, self._scheduler, ties, gathering) for number in range(self._num_ranks // _RANKS)]

    async def run(self) -> dict[str, float]:
        await self.open()
        await self._start()
        await self._meet()
        await self._save()
        await self._look()
        await self._kill_one()
        await self._end()
        return self.found

    @contextmanager
    def _cost(self, name: str, of: int) -> Iterator[None]:
        gc.collect()
        gc.disable()
        began = time.thread_time()
        yield
        self.found[f"{name}_us"] = (time.thread_time() - began) / of * 1e6
        gc.enable()

    @asynccontextmanager
    async def _block(self, name: str) -> AsyncIterator[None]:
        """The longest turn of the loop."""
        longest = 0.0

        async def watch() -> None:
            nonlocal longest
            while True:
                began = time.thread_time()
                await asyncio.sleep(0)
                longest = max(longest, time.thread_time() - began)

        watching = asyncio.create_task(watch())
        yield
        await asyncio.sleep(0)
        watching.cancel()
        self.found[f"{name}_ms"] = longest * 1e3

    async def _start(self) -> None:
        for host in self._hosts:
            spec = AgentSpec(agent_id=host.name, incarnation="i", hostname=host.name, address="h", slots=_RANKS)
            self._coordinator.apply(c.AttachAgent(spec=spec))
            self._scheduler.attach(host.name, host.push)
        task = TaskSpec(name="job", worker_count=self._num_ranks, entrypoint=("true",))
        self._coordinator.apply(c.SubmitTask(task_id=_TASK, spec=task))
        with self._cost("start", self._num_ranks):
            await self._scheduler.step()
        with self._cost("join", self._num_ranks):
            for host in self._hosts:
                await host.report(running=True, pid=1)
            await self._scheduler.step()
        assert self._state.membership.num_alive(_TASK) == self._num_ranks
        with self._cost("attach", _ATTACHED):
            for host in self._hosts[:_ATTACHED]:
                self._scheduler.attach(host.name, host.push)
                await self._scheduler.step()

    async def _meet(self) -> None:
        def hello(rank: int) -> rk.RankWords:
            name, incarnation = worker_id_of(_TASK, rank), incarnation_of(_TASK, 1, rank)
            said = rk.RankHello(worker_id=name, incarnation=incarnation, proof=self._secret)
            return rk.RankWords(hello=said, beat=pb.HeartbeatRequest(status=_STATUS), sequence=1)

        greetings = [(host, host.frames(hello)) for host in self._hosts]
        with self._cost("hello", self._num_ranks):
            for host, frames in greetings:
                host.carried.on_frames(frames)
            await asyncio.sleep(0)
        for sequence in range(2, 5):
            beats = [(host, host.beats(sequence)) for host in self._hosts]
            with self._cost("beat", self._num_ranks):
                for host, frames in beats:
                    host.carried.on_frames(frames)
                await asyncio.sleep(0)
        for step in range(3):
            arrivals = [(host, host.arrivals(step)) for host in self._hosts]
            with self._cost("barrier", self._num_ranks):
                for host, frames in arrivals:
                    host.carried.on_frames(frames)
                await self._told()

    async def _told(self) -> None:
        """What is done at the end of a turn, and what that leaves for the next."""
        for _ in range(3):
            await asyncio.sleep(0)

    async def _save(self) -> None:
        callers = [Caller(worker_id_of(_TASK, rank), incarnation_of(_TASK, 1, rank)) for rank in range(self._num_ranks)]
        asked = {"step": 10, "epoch": 0, "storage_path": "s3://b/step", "deadline_s": 60.0}
        vote = Vote(manifest_key="k", manifest_hash="h", size_bytes=5, duration_s=2.0)
        with self._cost("save", self._num_ranks):
            for rank, caller in enumerate(callers):
                begun = await self._coordinator.ask(c.BeginCheckpoint(caller=caller, **asked))  # type: ignore[arg-type]
                await self._coordinator.ask(
                    c.VoteCheckpoint(caller=caller, attempt=begun.attempt, rank=rank, vote=vote)
                )
            await self._coordinator.ask(c.CommitCheckpoint(caller=callers[0], attempt=begun.attempt))

    async def _look(self) -> None:
        """What is done all the time although nothing happens, and now and then."""
        await self._scheduler.step()
        with self._cost("tick", self._num_ranks):
            tick(self._coordinator)
        with self._cost("step", self._num_ranks):
            await self._scheduler.step()
        await asyncio.sleep(0.5)  # a look begins
        with self._cost("watch", self._num_ranks):
            for _ in range(self._num_ranks // SLICE):
                await self._scheduler.step()
                await asyncio.sleep(0.11)  # it goes on
        with self._cost("snapshot", self._num_ranks):
            Snapshots(self._state).begin(self._coordinator.seq).go_on(math.inf)

    async def _kill_one(self) -> None:
        """A rank dies while all others wait for it: they hear of it, and the gang goes back."""
        (first, *_), last = self._hosts, self._hosts[-1]
        for host in self._hosts[:-1]:
            host.carried.on_frames(host.arrivals(100))
        await self._told()
        told = first.num_told
        with self._cost("death", self._num_ranks):
            await last.report(last.ranks[-1], exit_code=-9)
            await self._told()
        assert first.num_told > told
        with self._cost("recovery", self._num_ranks):
            await self._scheduler.step()
        assert self._state.tasks.task(_TASK).status is TaskStatus.RECOVERING

    async def _end(self) -> None:
        """All others end, each with a report, and the next attempt begins: its members are let go."""
        with self._cost("ends", self._num_ranks):
            async with self._block("end"):
                for start in range(0, len(self._hosts), _TURN):
                    turn = self._hosts[start : start + _TURN]
                    await asyncio.gather(*(host.report(stopped=True, exit_code=-15) for host in turn))
            async with self._block("restart"):
                await self._scheduler.step()
        assert self._state.tasks.task(_TASK).attempt == 2, self._state.tasks.task(_TASK)


def _costs(num_ranks: int) -> dict[str, float]:
    return asyncio.run(_Costs(num_ranks).run())


_FLAT = ("start", "join", "attach", "beat", "barrier", "save", "death", "ends")

BENCHMARK = Benchmark(
    name="ranks",
    packages=("protobuf",),
    cases=(
        Case(
            name="CPU of the coordinator's loop per rank, in a task of 10,000 and of 1,000",
            variants=(
                ours(partial(_costs, 10_000), label="10,000 ranks behind 1,250 agents"),
                ours(partial(_costs, 1_000), name="thousand", label="1,000 ranks behind 125 agents"),
            ),
            targets=tuple(Target(metric=f"{name}_us", versus="thousand", at_most=1.5) for name in _FLAT),
            repeats=3,
        ),
    ),
)
