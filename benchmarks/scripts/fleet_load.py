"""Plays the agents of a large fleet and their ranks on one coordinator: `fleet_load.py NUM_HOSTS`. One real connection
per host with eight ranks behind it; the task, its starts, deaths and ends take the product's road, but no process runs.

Beside it runs `fleet_probe.py`, which asks the coordinator's loop every few milliseconds whether it is free.
"""

import asyncio
import gc
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import uvloop

from benchmarks.coordinator import serve
from benchmarks.measure import report
from benchmarks.scripts.fleet_host import RANKS, Host
from benchmarks.scripts.grpc_wire import Connection, connect_all, header_block
from benchmarks.scripts.load import cpu_s
from strata.client.channel import Channel
from strata.client.tasks import TasksClient
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.trust.access import Access
from strata.types.tasks import TaskSpec, TaskStatus, incarnation_of, worker_id_of

ROUNDS = 200  # of fifty, the 99th percentile is the slowest
KILLS = 3


class Probe:
    """`fleet_probe.py` as a process of its own."""

    def __init__(self, address: str) -> None:
        command = [sys.executable, str(Path(__file__).with_name("fleet_probe.py")), address]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.longest_s()

    def longest_s(self) -> float:
        """Since it was last asked."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


class Fleet:
    """All hosts of one coordinator, and what is still to be heard."""

    def __init__(self, num_hosts: int, stack: ExitStack) -> None:
        self._server = serve(stack)
        self.address = self._server.address
        self._token = token = self._server.token
        self._channel = Channel(self.address, access=Access(token=token))
        self._tasks = TasksClient(self._channel)
        self.attach_block = header_block("/strata.agents.Agents/Attach", token)
        self._hosts = [Host(self, number) for number in range(num_hosts)]
        self._num_ranks = num_hosts * RANKS
        self._due: dict[str, int] = {}
        self._here: dict[str, set[str]] = {}  # of those who are heard of once
        self._at: list[float] = []
        self._besides: Counter[str] = Counter()
        self._waiting: asyncio.Event | None = None
        self._jobs: set[asyncio.Task[None]] = set()
        self.over, self.beating, self.meeting = False, False, "none"
        self.found: dict[str, float] = {}

    def spawn(self, job: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(job)
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)

    # --- what is heard

    def expect(self, **due: int) -> None:
        self._due = {name.replace("_", " "): number for name, number in due.items()}
        self._here = {name: set() for name in self._due}
        self._waiting = asyncio.Event()
        self._at = []
        self._besides.clear()

    def heard(self, what: str, number: int) -> None:
        if what not in self._due or self._waiting is None:
            self._besides[what] += number
            return
        self._at += [time.perf_counter()] * number
        self._due[what] -= number
        if self._due[what] <= 0:
            del self._due[what]
            if not self._due:
                self._waiting.set()

    def came(self, what: str, who: str) -> None:
        here = self._here.setdefault(what, set())
        if who not in here:
            here.add(who)
            self.heard(what, 1)

    def went(self, what: str, who: str) -> None:
        here = self._here.get(what, set())
        if who in here:
            here.discard(who)
            self.heard(what, -1)

    async def all_heard(self, limit_s: float = 120.0) -> float:
        """Returns when."""
        assert self._waiting is not None
        try:
            await asyncio.wait_for(self._waiting.wait(), limit_s)
        except TimeoutError:
            besides = dict(self._besides) or "nothing"  # "broken", "welcome": ranks, or a stream, were lost meanwhile
            raise SystemExit(f"still waiting for {self._due} after {limit_s:g} s; besides came {besides}") from None
        return time.perf_counter()

    # --- what happens

    async def run(self) -> None:
        self.spawn(self._beat())
        await self._start()
        with closing(Probe(self.address)) as probe:
            await self._meet()
            await self._save()
            await self._kill_some()
            self.found["death_block_s"] = probe.longest_s()
        await self._restart_coordinator()
        with closing(Probe(self.address)) as probe:
            await self._end(probe)
        self.over = True

    async def _beat(self) -> None:
        """Each host once in a second, in turn. After a pause all whose turn it was: a busy machine may not make their
        beats so rare that they are lost."""
        clock, size, told = asyncio.get_running_loop().time, len(self._hosts), 0
        began = clock()
        while not self.over:
            due = int((clock() - began) * size)
            for number in range(max(told, due - size), due):
                self._hosts[number % size].beat()
            told = due
            await asyncio.sleep(0.05)

    async def _start(self) -> None:
        began = time.perf_counter()
        self.expect(welcome=len(self._hosts))
        await asyncio.gather(*(host.attach() for host in self._hosts))
        self.found["attach_s"] = await self.all_heard() - began
        began = time.perf_counter()
        self.expect(greeted=self._num_ranks)
        spec = TaskSpec(name="fleet", worker_count=self._num_ranks, entrypoint=("true",), max_restarts=100)
        self._task_id = await asyncio.to_thread(self._tasks.submit, spec)
        self.found["start_s"] = await self.all_heard() - began
        self.beating = True

    async def _meet(self) -> None:
        """Python's collector is off in this process meanwhile: it would stop all hosts at once, which are many
        processes in truth."""
        for step in range(2):
            await self._barrier(step)
        gc.collect()
        gc.disable()
        spent, own = cpu_s(self._server.pid), time.thread_time()
        taken = [await self._barrier(step) for step in range(2, ROUNDS + 2)]
        self.found["barrier_server_cpu_s"] = (cpu_s(self._server.pid) - spent) / ROUNDS  # beats included
        self.found["barrier_client_cpu_s"] = (time.thread_time() - own) / ROUNDS
        gc.enable()
        self.found["barrier_p50_s"] = statistics.median(taken)
        self.found["barrier_p99_s"] = statistics.quantiles(taken, n=100)[98]

    async def _barrier(self, step: int) -> float:
        """How long after the last arrival, all sent right after one another, the last release was heard."""
        *others, (last, words) = [(host, host.arrive(step)) for host in self._hosts]
        self.expect(released=self._num_ranks)
        for host, message in others:
            host.send(message)
        sent = time.perf_counter()
        last.send(words)
        return await self.all_heard() - sent

    async def _save(self) -> None:
        """Every rank begins and votes, the first commits. A rank has a connection of its own; here 64 are shared."""
        stub = self._channel.stub(CoordinatorStub)
        ranks = [
            (rank, worker_id_of(self._task_id, rank), incarnation_of(self._task_id, 1, rank))
            for rank in range(self._num_ranks)
        ]
        begins = [
            pb.CheckpointBegin(
                step=100,
                storage_path="s3://b/100",
                deadline_s=600.0,
                counts_ranks=True,
                worker_id=name,
                incarnation=incarnation,
            )
            for _, name, incarnation in ranks
        ]
        began = time.perf_counter()
        reply = await asyncio.to_thread(self._channel.call, stub.BeginCheckpoint, begins[0])
        votes = [
            pb.CheckpointVote(
                attempt=reply.attempt,
                rank=rank,
                manifest_key=f"r{rank}",
                manifest_hash="h" * 64,
                size_bytes=1,
                worker_id=name,
                incarnation=incarnation,
            )
            for rank, name, incarnation in ranks
        ]
        await self._call_all("BeginCheckpoint", [begin.SerializeToString() for begin in begins])
        await self._call_all("VoteCheckpoint", [vote.SerializeToString() for vote in votes])
        _, name, incarnation = ranks[0]
        commit = pb.CheckpointInfo(attempt=reply.attempt, worker_id=name, incarnation=incarnation)
        ack = await asyncio.to_thread(self._channel.call, stub.CommitCheckpoint, commit)
        self.found["commit_s"] = time.perf_counter() - began
        assert ack.success, ack

    async def _call_all(self, method: str, messages: list[bytes]) -> None:
        """One call after the other on each of the shared connections; an answer may be many frames."""
        head, waiting = header_block(f"/coordinator.Coordinator/{method}", self._token), messages[::-1]
        pool = await connect_all(self.address, min(64, len(messages)), lambda connection, payload: None)
        done = asyncio.Event()
        left = len(messages)

        def next_call(connection: Connection) -> None:
            nonlocal left
            left -= 1
            if waiting:
                connection.call(head, waiting.pop())
            elif not left:
                done.set()

        for connection in pool:
            connection.ended = partial(next_call, connection)
            connection.call(head, waiting.pop())
        await asyncio.wait_for(done.wait(), 120)
        for connection in pool:
            connection.transport.close()

    async def _kill_some(self) -> None:
        """One rank dies while all others wait for it at a barrier: when does each of them know? Then the gang starts
        anew, which takes the end of 10,000 ranks and the start of as many."""
        told: list[float] = []
        recovered: list[float] = []
        for number in range(KILLS):
            *others, victim = self._hosts
            self.expect(**{f"beat_{1_000 + number}": len(others)})
            for host in others:
                host.send(host.arrive(1_000 + number))
                host.beat(1_000 + number)  # answered when all of them wait
            await self.all_heard()
            self.expect(broken=self._num_ranks - RANKS)
            self.beating = False
            victim.end([RANKS], exit_code=-9)
            await asyncio.sleep(0)
            killed = time.perf_counter()
            await self.all_heard()
            told += [at - killed for at in self._at]
            self.expect(greeted=self._num_ranks)  # of the next attempt: the scheduler takes a step first
            recovered.append(await self.all_heard() - killed)
            self.beating = True
        self.found["death_p99_s"] = statistics.quantiles(told, n=100)[98]
        self.found["recovery_s"] = statistics.median(recovered)

    async def _restart_coordinator(self) -> None:
        self.beating = False
        self.expect(welcome=len(self._hosts), greeted=self._num_ranks)
        killed = time.perf_counter()
        self._server.kill()
        await asyncio.to_thread(self._server.start)
        self.found["restart_s"] = await self.all_heard() - killed
        task = await asyncio.to_thread(self._tasks.get, self._task_id)
        assert (task.status, task.attempt) == (TaskStatus.RUNNING, 1 + KILLS), task.reason
        await self._barrier(5_000)  # nobody is lost, or it would not be released

    async def _end(self, probe: Probe) -> None:
        self.expect(nothing_to_do=len(self._hosts))
        probe.longest_s()
        began = time.perf_counter()
        for host in self._hosts:
            host.end(list(host.ranks), exit_code=0)
        self.found["end_s"] = await self.all_heard() - began
        task = await asyncio.to_thread(self._tasks.get, self._task_id)
        assert task.status is TaskStatus.COMPLETED, task.reason
        self.found["end_block_s"] = probe.longest_s()
        self.found["server_rss_bytes"] = float(psutil.Process(self._server.pid).memory_info().rss)


async def main(num_hosts: int) -> None:
    with ExitStack() as stack:
        fleet = Fleet(num_hosts, stack)
        await fleet.run()
        report(fleet.found)


uvloop.run(main(int(sys.argv[1])))
