"""Loads a coordinator, or the bare TCP floor, and reports what it took: MODE ADDRESS PID TOKEN NUMBER.

Modes: `beats` (ping-pong heartbeats, one stream per connection), `barrier` (ranks that meet again and again, each with
the client that `run.barrier` uses, straight to the coordinator), `agents` (the same with eight ranks behind each agent:
one host with the relay of `strata agent` and real ranks; of the others, ready-made, byte for byte what a relay sends
when its ranks arrive in one turn), `all_agents` (every host is such a one, all of them on these cores), `bare` (for
the floor: ready-made messages alone), `register` (durable registrations), `idle` (one beat a second).
"""

import asyncio
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import psutil
import uvloop

from benchmarks.measure import report
from benchmarks.scripts.grpc_wire import Connection, connect_all, header_block
from strata.agent.relay import Relay
from strata.client.attach import Attachment
from strata.client.tie import Tie
from strata.errors import StrataError
from strata.grpcserver.wire import Turns
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.trust.access import Access

BEATS = header_block("/coordinator.Coordinator/StreamHeartbeats")
REGISTER = header_block("/coordinator.Coordinator/RegisterWorker")
ROUNDS = 100
RANKS_PER_AGENT = 8
TIES = 0x2A  # the first byte of a CoordinatorMessage that carries some

RUN = uuid.uuid4().hex[:8]  # rounds of the harness must not meet each other's workers


def cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def name(number: int) -> str:
    return f"{RUN}-{number}"


def agent_name(number: int) -> str:
    return f"{RUN}-agent-{number}"


def beat(number: int) -> bytes:
    """As a worker with one GPU sends it: 112 bytes in the spike, the same here."""
    gpu = pb.GpuUsage(gpu_id=0, utilization_percent=97.5, memory_used_bytes=2**34, memory_total_bytes=2**36)
    request = pb.HeartbeatRequest(
        worker_id=name(number),
        timestamp_ms=1_700_000_000_000,
        status=pb.WorkerStatus(state=pb.WorkerStatus.TRAINING, current_step=12_345, current_epoch=3),
        resources=pb.ResourceUsage(cpu_percent=55.5, memory_used_bytes=2**35, gpu_usage=[gpu], disk_read_bytes=10**9),
    )
    return request.SerializeToString()


def arrival(number: int, step: int, request_id: str) -> pb.BarrierRequest:
    return pb.BarrierRequest(worker_id=name(number), barrier_id="b", step=step, request_id=request_id, incarnation=RUN)


def frames_of(agent: int, words: Callable[[int], rk.RankWords]) -> bytes:
    """What an agent passes on when all its ranks have spoken in one turn."""
    first = agent * RANKS_PER_AGENT
    frames = [
        ag.TieFrame(tie=local + 1, payload=words(first + local).SerializeToString()) for local in range(RANKS_PER_AGENT)
    ]
    return ag.AgentMessage(ties=ag.TieFrames(frames=frames)).SerializeToString()


def arrivals_of(agent: int, step: int) -> bytes:
    """Byte for byte what a relay makes of them."""
    first = agent * RANKS_PER_AGENT
    ranks = [
        ag.Arriving(tie=local + 1, worker_id=name(first + local), incarnation=RUN, request_id=f"{first + local}-{step}")
        for local in range(RANKS_PER_AGENT)
    ]
    alike = pb.BarrierRequest(barrier_id="b", step=step)
    frame = ag.TieFrame(arrivals=ag.Arrivals(alike=alike, ranks=ranks))
    return ag.AgentMessage(ties=ag.TieFrames(frames=[frame])).SerializeToString()


def greetings(agent: int) -> list[bytes]:
    """The hellos of an agent and of its ranks."""
    hello = ag.AgentHello(agent_id=agent_name(agent), incarnation=RUN, hostname="h", slots=RANKS_PER_AGENT)
    ranks = frames_of(agent, lambda rank: rk.RankWords(hello=rk.RankHello(worker_id=name(rank), incarnation=RUN)))
    return [ag.AgentMessage(hello=hello).SerializeToString(), ranks]


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
        self._relay.attach(self._stream.send)
        await self._relay.start(self.path)
        self._beating = asyncio.create_task(self._beat())

    def _on_message(self, message: ag.CoordinatorMessage) -> None:
        if message.WhichOneof("message") == "ties":
            self._relay.on_frames(message.ties)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._stream.send(ag.AgentMessage(beat=ag.AgentBeat(sequence=1)))


class Load:
    """The connections and the answers that are still to come."""

    def __init__(self, address: str, pid: int, token: str) -> None:
        self.address, self.pid, self.token = address, pid, token
        self.floor = not token
        self._due = 0
        self._all_here = asyncio.Event()
        self.payloads: list[bytes] = []

    # --- answers

    def expect(self, number: int) -> None:
        self._due = number
        self._all_here.clear()
        self.payloads.clear()

    def on_message(self, connection: Connection | None, payload: bytes) -> None:
        self.payloads.append(payload)
        self._due -= 1
        if self._due == 0:
            self._all_here.set()

    async def all_here(self) -> None:
        await asyncio.wait_for(self._all_here.wait(), 120)

    # --- preparation

    async def register_all(self, number: int, task_id: str, per_agent: int = 0) -> None:
        """Not measured: many at a time, over a few connections."""
        if self.floor:
            return
        pool = await connect_all(self.address, min(16, number), self.on_message)
        for start in range(0, number, len(pool)):
            batch = range(start, min(start + len(pool), number))
            self.expect(len(batch))
            for connection, worker in zip(pool, batch, strict=False):
                info = pb.WorkerInfo(worker_id=name(worker), task_id=task_id, incarnation=RUN)
                if per_agent:
                    info.agent_id = agent_name(worker // per_agent)
                connection.call(REGISTER, info.SerializeToString())
            await self.all_here()
        for connection in pool:
            connection.transport.close()

    # --- modes

    async def beats(self, number: int, seconds: float = 2.0) -> dict[str, float]:
        await self.register_all(number, f"{RUN}-task")
        messages = [beat(worker) for worker in range(number)]
        done, ending = 0, 0.0

        def answer(connection: Connection, payload: bytes) -> None:
            nonlocal done
            done += 1
            if time.perf_counter() < ending:
                connection.send(messages[connection.number])
            else:
                self.on_message(connection, payload)

        connections = await connect_all(self.address, number, answer)
        self.expect(number)
        before, start = cpu_s(self.pid), time.perf_counter()
        ending = start + seconds
        for connection in connections:
            connection.open(BEATS)
            connection.send(messages[connection.number])
        await self.all_here()
        elapsed = time.perf_counter() - start
        return {"messages_per_s": done / elapsed, "server_cpu_us": (cpu_s(self.pid) - before) / done * 1e6}

    async def barrier(self, number: int) -> dict[str, float]:
        await self.register_all(number, f"{RUN}-task")
        turns = Turns()
        return await self._meet([Tie(Member(rank), (self.address,), turns=turns) for rank in range(number)])

    async def all_agents(self, number: int) -> dict[str, float]:
        return await self.agents(number, number // RANKS_PER_AGENT)

    async def agents(self, number: int, real: int = 1) -> dict[str, float]:
        """On two cores the work that 125 hosts do at once would be done one after the other, so all but `real` of them
        are messages that are ready: what an agent sends, and the count of what it gets."""
        await self.register_all(number, f"{RUN}-task", RANKS_PER_AGENT)
        turns = Turns()
        num_hosts = number // RANKS_PER_AGENT
        ready = await connect_all(self.address, num_hosts - real, self._on_agent_message)
        for connection in ready:
            connection.open(header_block("/strata.agents.Agents/Attach", self.token))
            for message in greetings(real + connection.number):
                connection.send(message)
        with tempfile.TemporaryDirectory() as folder:
            hosts = [Host(host, Path(folder) / f"{host}.sock") for host in range(real)]
            for host in hosts:
                await host.start(self.address, self.token, turns)
            members = [(rank, hosts[rank // RANKS_PER_AGENT]) for rank in range(real * RANKS_PER_AGENT)]
            return await self._meet([Tie(Member(rank), (f"unix:{host.path}",)) for rank, host in members], ready)

    def _on_agent_message(self, connection: Connection, payload: bytes) -> None:
        if payload[0] == TIES and self._due > 0:  # not the welcomes of its ranks, nor what is to run there
            self.on_message(connection, payload)

    async def _meet(self, ties: list[Tie], ready: Sequence[Connection] = ()) -> dict[str, float]:
        """`ready` are the connections of hosts that send a whole round of their ranks as one message, before ours."""
        num_ranks = len(ties) + len(ready) * RANKS_PER_AGENT
        running = []
        for start in range(0, len(ties), 50):
            batch = ties[start : start + 50]
            running += [asyncio.create_task(tie.run()) for tie in batch]
            await asyncio.gather(*(tie.beat() for tie in batch))  # each has a stream, and was heard
        places: list[int] = []

        def on_result(result: pb.BarrierResponse | StrataError) -> None:
            assert isinstance(result, pb.BarrierResponse), result
            places.append(result.arrival_order)
            self.on_message(None, b"")

        def prepare(step: int) -> Callable[[], None]:
            places.clear()
            requests = [arrival(rank, step, f"{rank}-{step}") for rank in range(len(ties))]
            first = len(ties) // RANKS_PER_AGENT
            messages = [arrivals_of(first + connection.number, step) for connection in ready]

            def send() -> None:
                _send_all(ready, messages)
                for tie, request in zip(ties, requests, strict=True):
                    tie.arrive(request, on_result)

            return send

        def check() -> None:
            """Everybody was released, each with a place of its own."""
            others = [ag.CoordinatorMessage.FromString(payload).ties.frames for payload in self.payloads if payload]
            told = [place for frames in others for frame in frames for place in frame.releases.arrival_orders]
            found = sorted([*places, *told])
            assert found == list(range(1, num_ranks + 1)), f"{len(found)} of {num_ranks}"

        async def between() -> None:
            _send_all(ready, [ag.AgentMessage(beat=ag.AgentBeat(sequence=1)).SerializeToString()] * len(ready))

        taken = await self._time_rounds(len(ties) + len(ready), num_ranks, prepare, check, between)
        for task in running:
            task.cancel()
        await asyncio.wait(running)
        return taken

    async def bare(self, number: int, ranks: int) -> dict[str, float]:
        """The floor's barrier: so many connections, each with the same message again and again."""
        connections = await connect_all(self.address, number, self.on_message)
        message = rk.RankWords(arrivals=[arrival(0, 0, "r")] * ranks).SerializeToString()
        for connection in connections:
            connection.open(BEATS)
        send = partial(_send_all, connections, [message] * number)
        return await self._time_rounds(
            number, number * ranks, lambda step: send, lambda: None, lambda: asyncio.sleep(0)
        )

    async def _time_rounds(
        self,
        number: int,
        ranks: int,
        prepare: Callable[[int], Callable[[], None]],
        check: Callable[[], None],
        between: Callable[[], Awaitable[None]],
    ) -> dict[str, float]:
        """From the last arrival that was sent to the last release that was received, all arriving at once. Hosts that
        are ready-made messages beat between the rounds, one in a second."""
        taken: list[float] = []
        before, beaten_at = cpu_s(self.pid), time.monotonic()
        for step in range(ROUNDS + 3):
            send = prepare(step)
            self.expect(number)
            send()
            await asyncio.sleep(0)  # what was said in this turn of the loop leaves now
            sent = time.perf_counter()
            await self.all_here()
            if step >= 3:
                taken.append(time.perf_counter() - sent)
            check()
            if time.monotonic() - beaten_at > 1.0:
                beaten_at = time.monotonic()
                await between()
        arrivals = ranks * (ROUNDS + 3)
        return {
            "p50_s": statistics.median(taken),
            "p99_s": statistics.quantiles(taken, n=100)[98],
            "max_s": max(taken),
            "server_cpu_us": (cpu_s(self.pid) - before) / arrivals * 1e6,
        }

    async def register(self, number: int, concurrent: int = 64) -> dict[str, float]:
        messages = [
            pb.WorkerInfo(worker_id=name(worker), hostname="host", task_id=f"{RUN}-{worker % 8}", incarnation=RUN)
            for worker in range(number)
        ]
        waiting = [message.SerializeToString() for message in reversed(messages)]

        def answer(connection: Connection, payload: bytes) -> None:
            if waiting:
                connection.call(REGISTER, waiting.pop())
            self.on_message(connection, payload)

        connections = await connect_all(self.address, concurrent, answer)
        self.expect(number)
        before, start = cpu_s(self.pid), time.perf_counter()
        for connection in connections:
            connection.call(REGISTER, waiting.pop())
        await self.all_here()
        elapsed = time.perf_counter() - start
        if not self.floor:
            replies = [pb.WorkerConfig.FromString(payload) for payload in self.payloads]
            assert len({reply.assigned_id for reply in replies}) == number
        return {"registrations_per_s": number / elapsed, "server_cpu_us": (cpu_s(self.pid) - before) / number * 1e6}

    async def idle(self, number: int, seconds: float = 8.0) -> dict[str, float]:
        await self.register_all(number, f"{RUN}-task")
        connections = await connect_all(self.address, number, self.on_message)
        messages = [beat(worker) for worker in range(number)]
        for connection in connections:
            connection.open(BEATS)
            connection.send(messages[connection.number])
        await asyncio.sleep(1.0)
        self.expect(1 << 40)
        sent = 0
        before, start = cpu_s(self.pid), time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds:
            while sent < int(elapsed * number):
                connections[sent % number].send(messages[sent % number])
                sent += 1
            await asyncio.sleep(0.005)
        used = cpu_s(self.pid) - before
        return {"cores": used / seconds, "beats_per_s": len(self.payloads) / seconds}


def _send_all(connections: Sequence[Connection], messages: Sequence[bytes]) -> None:
    for connection, message in zip(connections, messages, strict=True):
        connection.send(message)


async def main() -> None:
    mode, address, pid, token, *numbers = sys.argv[1:]
    load = Load(address, int(pid), token)
    run: Callable[..., Awaitable[dict[str, float]]] = getattr(load, mode)
    report(await run(*map(int, numbers)))


uvloop.run(main())
