"""What the loads of a coordinator have in common: its workers, and the answers that are still to come."""

import asyncio
import sys
import uuid
from collections.abc import Awaitable, Callable

import psutil
import uvloop

from benchmarks.measure import report
from benchmarks.scripts.grpc_wire import Connection, connect_all, header_block
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["REGISTER", "RUN", "Load", "agent_name", "beat", "cpu_s", "name", "run_mode"]

REGISTER = header_block("/coordinator.Coordinator/RegisterWorker")
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

    async def register_all(self, number: int, task_id: str, agent_of: Callable[[int], str] = lambda worker: "") -> None:
        """Not measured: many at a time, over a few connections."""
        if self.floor:
            return
        pool = await connect_all(self.address, min(16, number), self.on_message)
        for start in range(0, number, len(pool)):
            batch = range(start, min(start + len(pool), number))
            self.expect(len(batch))
            for connection, worker in zip(pool, batch, strict=False):
                info = pb.WorkerInfo(
                    worker_id=name(worker), task_id=task_id, incarnation=RUN, agent_id=agent_of(worker)
                )
                connection.call(REGISTER, info.SerializeToString())
            await self.all_here()
        for connection in pool:
            connection.transport.close()


def run_mode(kind: Callable[[str, int, str], Load]) -> None:
    """Runs what the command line asks for, MODE ADDRESS PID TOKEN NUMBER…, and reports what it took."""
    mode, address, pid, token, *numbers = sys.argv[1:]

    async def main() -> None:
        method: Callable[..., Awaitable[dict[str, float]]] = getattr(kind(address, int(pid), token), mode)
        report(await method(*map(int, numbers)))

    uvloop.run(main())
