"""Loads a coordinator, or the bare TCP floor, and reports what it took: MODE ADDRESS PID TOKEN NUMBER.

Modes: `beats` (ping-pong heartbeats, one stream per connection), `barrier` (one arrival per connection and round, on
the agents' stream), `held` (the same as held unary calls), `register` (durable registrations), `idle` (one beat a
second).
"""

import asyncio
import statistics
import sys
import time
import uuid
from collections.abc import Awaitable, Callable

import psutil
import uvloop

from benchmarks.measure import report
from benchmarks.scripts.grpc_wire import Connection, connect_all, header_block
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb

BEATS = header_block("/coordinator.Coordinator/StreamHeartbeats")
REGISTER = header_block("/coordinator.Coordinator/RegisterWorker")
WAIT = header_block("/coordinator.Coordinator/WaitBarrier")
BARRIER_RESULT = 0x22  # the first byte of a CoordinatorMessage that carries one

RUN = uuid.uuid4().hex[:8]  # rounds of the harness must not meet each other's workers


def cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def name(number: int) -> str:
    return f"{RUN}-{number}"


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
    return pb.BarrierRequest(worker_id=name(number), barrier_id="b", step=step, request_id=request_id)


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

    def on_message(self, connection: Connection, payload: bytes) -> None:
        self.payloads.append(payload)
        self._due -= 1
        if self._due == 0:
            self._all_here.set()

    def on_barrier_message(self, connection: Connection, payload: bytes) -> None:
        if payload[0] == BARRIER_RESULT:
            self.on_message(connection, payload)

    async def all_here(self) -> None:
        await asyncio.wait_for(self._all_here.wait(), 120)

    # --- preparation

    async def register_all(self, number: int, task_id: str) -> None:
        """Not measured: many at a time, over a few connections."""
        if self.floor:
            return
        pool = await connect_all(self.address, min(16, number), self.on_message)
        for start in range(0, number, len(pool)):
            batch = range(start, min(start + len(pool), number))
            self.expect(len(batch))
            for connection, worker in zip(pool, batch, strict=False):
                info = pb.WorkerInfo(worker_id=name(worker), task_id=task_id, incarnation=RUN)
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

    async def barrier(self, number: int, rounds: int = 100) -> dict[str, float]:
        await self.register_all(number, f"{RUN}-task")
        connections = await connect_all(self.address, number, self.on_barrier_message)
        block = header_block("/strata.agents.Agents/Attach", self.token)
        for connection in connections:
            connection.open(block)
            hello = ag.AgentHello(agent_id=name(connection.number), incarnation=RUN, hostname="h", slots=1)
            connection.send(ag.AgentMessage(hello=hello).SerializeToString())

        def prepare(step: int) -> Callable[[], None]:
            ready = [
                ag.AgentMessage(barrier=arrival(worker, step, f"{worker}-{step}")).SerializeToString()
                for worker in range(number)
            ]
            return lambda: _send_all(connections, ready)

        beaten_at = time.monotonic()

        async def between() -> None:
            """Agents that say nothing for five seconds are lost: they beat, but not while a barrier is timed."""
            nonlocal beaten_at
            if not self.floor and time.monotonic() - beaten_at > 2.0:
                beaten_at = time.monotonic()
                _send_all(connections, [ag.AgentMessage(beat=ag.AgentBeat(sequence=1)).SerializeToString()] * number)
                await asyncio.sleep(0.3)

        return await self._time_rounds(number, rounds, prepare, between)

    async def held(self, number: int, rounds: int = 100) -> dict[str, float]:
        await self.register_all(number, f"{RUN}-task")
        connections = await connect_all(self.address, number, self.on_message)

        def prepare(step: int) -> Callable[[], None]:
            ready = [arrival(worker, step, f"{worker}-{step}").SerializeToString() for worker in range(number)]

            def send() -> None:
                for connection, message in zip(connections, ready, strict=True):
                    connection.call(WAIT, message)

            return send

        return await self._time_rounds(number, rounds, prepare, lambda: asyncio.sleep(0))

    async def _time_rounds(
        self,
        number: int,
        rounds: int,
        prepare: Callable[[int], Callable[[], None]],
        between: Callable[[], Awaitable[None]],
    ) -> dict[str, float]:
        """From the last arrival that was sent to the last release that was received, all arriving at once."""
        taken: list[float] = []
        before = cpu_s(self.pid)
        for step in range(rounds + 3):
            send = prepare(step)
            self.expect(number)
            send()
            sent = time.perf_counter()
            await self.all_here()
            if step >= 3:
                taken.append(time.perf_counter() - sent)
            if not self.floor:
                self._check(number)
            await between()
        arrivals = number * (rounds + 3)
        return {
            "p50_s": statistics.median(taken),
            "p99_s": statistics.quantiles(taken, n=100)[98],
            "max_s": max(taken),
            "server_cpu_us": (cpu_s(self.pid) - before) / arrivals * 1e6,
        }

    def _check(self, number: int) -> None:
        """Everybody was released, each with a place of its own."""
        if self.payloads[0][0] == BARRIER_RESULT:
            responses = [ag.CoordinatorMessage.FromString(payload).barrier.response for payload in self.payloads]
        else:
            responses = [pb.BarrierResponse.FromString(payload) for payload in self.payloads]
        assert sorted(item.arrival_order for item in responses) == list(range(1, number + 1)), responses[0]

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


def _send_all(connections: list[Connection], messages: list[bytes]) -> None:
    for connection, message in zip(connections, messages, strict=True):
        connection.send(message)


async def main() -> None:
    mode, address, pid, token, *numbers = sys.argv[1:]
    load = Load(address, int(pid), token)
    run: Callable[..., Awaitable[dict[str, float]]] = getattr(load, mode)
    report(await run(*map(int, numbers)))


uvloop.run(main())
