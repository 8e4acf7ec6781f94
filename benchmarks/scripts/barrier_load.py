"""Loads a coordinator with barriers, or the bare TCP floor, and reports what it took: MODE ADDRESS PID TOKEN NUMBER.

Modes:
- `barrier`: ranks that meet again and again, straight to the coordinator: a hundred with the client that `run.barrier`
  uses; of the others, ready-made, byte for byte what it sends. `all_ranks`: every rank is such a one.
- `agents`: the same with eight ranks behind each agent: one host with the relay of `strata agent` and real ranks; of
  the others, ready-made, byte for byte what a relay sends when its ranks arrive in one turn. `all_agents`: all hosts
  are such, on these cores.
- `killed_agent`: kill -9 of a `strata agent` whose ranks wait at a barrier.
- `bare`: for the floor, ready-made messages alone.
"""

import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from benchmarks.scripts.barrier_peers import (
    RANKS_PER_AGENT,
    Ready,
    arrival,
    arrivals_of,
    greetings,
    places_of_host,
    send_all,
    words_of,
)
from benchmarks.scripts.grpc_wire import Connection, connect_all, header_block
from benchmarks.scripts.load import RUN, Load, agent_name, beat, cpu_s, name, run_mode
from strata.agent.relay import Relay
from strata.client.attach import Attachment
from strata.client.tie import Tie
from strata.errors import StrataError
from strata.grpcserver.wire import Turns
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.trust.access import Access

TIE = header_block("/strata.ranks.Ranks/Tie")
ROUNDS = 500  # of a hundred, the 99th percentile is the slowest
KILLS = 5
REAL_RANKS = 100
TIES = 0x2A  # the first byte of a CoordinatorMessage that carries some
RESULT = 0x32  # the first byte of RankNews of a barrier
Moment = tuple[float, float]  # by the clock, and of this thread's CPU


class Member:
    """A rank that only meets others."""

    def __init__(self, number: int) -> None:
        self._name = name(number)
        self._beat = pb.HeartbeatRequest.FromString(beat(number))

    def hello(self) -> rk.RankHello:
        return rk.RankHello(worker_id=self._name, incarnation=RUN)

    def beat(self) -> pb.HeartbeatRequest:
        return self._beat

    def hear(self, news: rk.RankNews) -> None:
        pass

    def refused(self, error: StrataError) -> None:
        raise error


class Host:
    """An agent without processes: its stream, its beats, its relay."""

    def __init__(self, number: int, path: Path) -> None:
        self._agent_id = agent_name(number)
        self.path = path
        self._relay = Relay()

    async def start(self, address: str, token: str, turns: Turns) -> None:
        hello = ag.AgentHello(agent_id=self._agent_id, incarnation=RUN, hostname="h", slots=RANKS_PER_AGENT)
        self._stream = await Attachment.open(address, Access(token=token), hello, self._on_message, turns)
        self._relay.attach(self._stream.send, takes_crowds=True)
        await self._relay.start(self.path)
        self._beating = asyncio.create_task(self._beat())

    def _on_message(self, message: ag.CoordinatorMessage) -> None:
        if message.WhichOneof("message") == "ties":
            self._relay.on_frames(message.ties)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._stream.send(ag.AgentMessage(beat=ag.AgentBeat(sequence=1)))


class Agent:
    """A `strata agent` as a process of its own."""

    def __init__(self, folder: Path, address: str, token: str) -> None:
        self._folder = folder
        self._command = [sys.executable, "-m", "strata", "agent", "--data-dir", str(folder), "--coordinator", address]
        self._env = os.environ | {"STRATA_TOKEN": token, "STRATA_LOG": "error"}
        self.socket = folder / "agent" / "ranks.sock"

    def start(self) -> None:
        """Returns when it is attached."""
        ready = self._folder / "agent.json"
        ready.unlink(missing_ok=True)
        self._process = subprocess.Popen(self._command, env=self._env, stdout=subprocess.DEVNULL)
        while not ready.exists():
            assert self._process.poll() is None, "the agent has ended"
            time.sleep(0.02)
        self.agent_id: str = json.loads(ready.read_text())["agent_id"]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def has_ranks(self, number: int) -> None:
        """Returns when so many speak to it: its socket's connections without the one that listens."""
        process, found = psutil.Process(self._process.pid), 0
        while found < number:
            time.sleep(0.05)
            opened = process.net_connections(kind="unix")
            found = sum(str(item.laddr).endswith(self.socket.name) for item in opened) - 1


class BarrierLoad(Load):
    _rounds = ROUNDS
    _pause_s = 0.0

    async def all_ranks(self, number: int) -> dict[str, float]:
        return await self.barrier(number, number)

    async def barrier(
        self, number: int, real: int = REAL_RANKS, rounds: int = ROUNDS, pause_ms: int = 0
    ) -> dict[str, float]:
        """A thousand ranks have a thousand processors, this process has one: what they do at once it would do one after
        the other. Between two barriers they are busy elsewhere for so long."""
        self._rounds, self._pause_s = rounds, pause_ms / 1000
        await self.register_all(number, f"{RUN}-task")
        turns = Turns()
        connections = await connect_all(self.address, number - real, self._on_rank_message)
        for connection in connections:
            rank = real + connection.number
            connection.open(TIE)
            hello = rk.RankHello(worker_id=name(rank), incarnation=RUN)
            connection.send(rk.RankWords(hello=hello).SerializeToString())
        ready = Ready(
            connections,
            say=lambda number, step, request_id: words_of(real + number, step, request_id),
            beat=lambda number: rk.RankWords(
                beat=pb.HeartbeatRequest.FromString(beat(real + number)), sequence=1
            ).SerializeToString(),
            places=lambda payload: [rk.RankNews.FromString(payload).result.response.arrival_order],
        )
        return await self._meet(
            [Tie(Member(rank), (self.address,), turns=turns) for rank in range(real)], ready, number
        )

    def _on_rank_message(self, connection: Connection, payload: bytes) -> None:
        if payload[0] == RESULT:
            self.on_message(connection, payload)

    async def all_agents(self, number: int) -> dict[str, float]:
        return await self.agents(number, number // RANKS_PER_AGENT)

    async def agents(self, number: int, real: int = 1) -> dict[str, float]:
        """On two cores the work that 125 hosts do at once would be done one after the other, so all but `real` of them
        are messages that are ready: what an agent sends, and the count of what it gets."""
        await self.register_all(number, f"{RUN}-task", lambda rank: agent_name(rank // RANKS_PER_AGENT))
        turns = Turns()
        num_hosts = number // RANKS_PER_AGENT
        connections = await connect_all(self.address, num_hosts - real, self._on_agent_message)
        self.expect(len(connections))
        for connection in connections:
            connection.open(header_block("/strata.agents.Agents/Attach", self.token))
            for message in greetings(real + connection.number):
                connection.send(message)
        if connections:
            await self.all_here()
        ready = Ready(
            connections,
            say=lambda number, step, request_id: arrivals_of(real + number, step, request_id),
            beat=lambda number: ag.AgentMessage(beat=ag.AgentBeat(sequence=1)).SerializeToString(),
            places=places_of_host,
        )
        with tempfile.TemporaryDirectory() as folder:
            hosts = [Host(host, Path(folder) / f"{host}.sock") for host in range(real)]
            for host in hosts:
                await host.start(self.address, self.token, turns)
            members = [(rank, hosts[rank // RANKS_PER_AGENT]) for rank in range(real * RANKS_PER_AGENT)]
            return await self._meet(
                [Tie(Member(rank), (f"unix:{host.path}",)) for rank, host in members], ready, number
            )

    def _on_agent_message(self, connection: Connection, payload: bytes) -> None:
        if payload[0] == TIES:  # the welcome of its ranks, then their releases; not what is to run there
            self.on_message(connection, payload)

    async def _meet(self, ties: list[Tie], ready: Ready, num_ranks: int) -> dict[str, float]:
        """Those who are ready-made arrive before ours."""
        running = []
        for start in range(0, len(ties), 50):
            batch = ties[start : start + 50]
            running += [asyncio.create_task(tie.run()) for tie in batch]
            await asyncio.gather(*(tie.beat() for tie in batch))  # each has a stream, and was heard
        places: list[int] = []
        meeting = RUN

        def on_result(result: pb.BarrierResponse | StrataError) -> None:
            nonlocal meeting
            assert isinstance(result, pb.BarrierResponse), result
            places.append(result.arrival_order)
            meeting = result.meeting
            self.on_message(None, b"")

        def prepare(step: int) -> Callable[[], Moment]:
            places.clear()
            *others, (last, request) = [(tie, arrival(rank, step)) for rank, tie in enumerate(ties)]
            send_ready = ready.prepare(step, meeting)

            def send() -> Moment:
                send_ready()
                for tie, other in others:
                    tie.arrive(other, on_result)
                moment = _now()
                last.arrive(request, on_result)
                return moment

            return send

        def check() -> None:
            """Everybody was released, each with a place of its own."""
            told = [place for payload in self.payloads if payload for place in ready.places(payload)]
            found = sorted([*places, *told])
            assert found == list(range(1, num_ranks + 1)), f"{len(found)} of {num_ranks}"

        taken = await self._time_rounds(len(ties) + len(ready.connections), num_ranks, prepare, check)
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        return taken

    async def killed_agent(self, number: int) -> dict[str, float]:
        """All ranks of a host wait for one that is elsewhere. It arrives when their agent is killed: how much later are
        all of them released?"""
        with tempfile.TemporaryDirectory() as folder:
            agent = Agent(Path(folder), self.address, self.token)
            await asyncio.to_thread(agent.start)
            await self.register_all(number, f"{RUN}-task", lambda rank: agent.agent_id if rank else "")
            roads = [(f"unix:{agent.socket}", self.address)] * (number - 1)
            ties = [Tie(Member(rank), road) for rank, road in enumerate([(self.address,), *roads])]
            running = [asyncio.create_task(tie.run()) for tie in ties]
            taken = [await self._kill_and_meet(agent, ties, step) for step in range(KILLS)]
            agent.kill()
            for task in running:
                task.cancel()
            await asyncio.wait(running)
        return {"p50_s": statistics.median(taken), "max_s": max(taken)}

    async def _kill_and_meet(self, agent: "Agent", ties: list[Tie], step: int) -> float:
        await asyncio.to_thread(agent.has_ranks, len(ties) - 1)
        last, *others = (arrival(rank, step) for rank in range(len(ties)))
        self.expect(len(ties))
        for tie, request in zip(ties[1:], others, strict=True):
            tie.arrive(request, lambda result: self.on_message(None, b""))
        await asyncio.gather(*(tie.beat() for tie in ties))  # what was said before it has arrived
        agent.kill()
        killed = time.perf_counter()
        ties[0].arrive(last, lambda result: self.on_message(None, b""))
        await self.all_here()
        taken = time.perf_counter() - killed
        await asyncio.to_thread(agent.start)
        return taken

    async def bare(self, number: int, ranks: int) -> dict[str, float]:
        """The floor's barrier: so many connections, each with the same message again and again."""
        connections = await connect_all(self.address, number, self.on_message)
        message = rk.RankWords(arrivals=[arrival(0, 0, "r")] * ranks).SerializeToString()
        for connection in connections:
            connection.open(TIE)

        def send() -> Moment:
            send_all(connections[:-1], [message] * (number - 1))
            moment = _now()
            connections[-1].send(message)
            return moment

        return await self._time_rounds(number, number * ranks, lambda step: send, lambda: None)

    async def _time_rounds(
        self, number: int, ranks: int, prepare: Callable[[int], Callable[[], Moment]], check: Callable[[], None]
    ) -> dict[str, float]:
        """From the moment before the last arrival is sent, all right after one another, to the last release that was
        received; and the CPU that this process took in that time, in which it plays all of them. Python's collector is
        off meanwhile: it would stop all ranks at once, which are many processes in truth."""
        taken: list[float] = []
        own_s = 0.0
        gc.collect()
        gc.freeze()
        gc.disable()
        before = cpu_s(self.pid)
        for step in range(self._rounds + 3):
            send = prepare(step)
            self.expect(number)
            if self._pause_s:
                await asyncio.sleep(self._pause_s)
            sent, own = send()
            await self.all_here()
            if step >= 3:
                taken.append(time.perf_counter() - sent)
                own_s += time.thread_time() - own
            check()
        arrivals = ranks * (self._rounds + 3)
        return {
            "p50_s": statistics.median(taken),
            "p99_s": statistics.quantiles(taken, n=100)[98],
            "max_s": max(taken),
            "client_cpu_us": own_s / (ranks * self._rounds) * 1e6,
            "server_cpu_us": (cpu_s(self.pid) - before) / arrivals * 1e6,
        }


def _now() -> Moment:
    return time.perf_counter(), time.thread_time()


run_mode(BarrierLoad)
