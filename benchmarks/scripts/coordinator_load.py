"""Loads a coordinator, or the bare TCP floor, and reports what it took: MODE ADDRESS PID TOKEN NUMBER.

Modes: `beats` (ping-pong heartbeats, one stream per connection), `register` (durable registrations), `idle` (one beat a
second). Barriers are in barrier_load.py.
"""

import asyncio
import time

from benchmarks.scripts.grpc_wire import Connection, connect_all, header_block
from benchmarks.scripts.load import REGISTER, RUN, Load, beat, cpu_s, name, run_mode
from strata.protocol.generated import coordinator_pb2 as pb

BEATS = header_block("/coordinator.Coordinator/StreamHeartbeats")


class ControlLoad(Load):
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


run_mode(ControlLoad)
