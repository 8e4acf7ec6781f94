"""What one poll of `strata run` costs with 1,000 ranks: bytes of the answer, and CPU time of the coordinator's loop.

Also a follower's first message, which holds every record. `python scripts/poll_cost.py` prints both.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, cast

from strata.clock import SystemClock
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.journal.sqlite import SqliteJournal
from strata.coordinator.rpc.control import ControlService
from strata.coordinator.rpc.vitals import VitalsFeed
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.protocol.generated import control_pb2 as ct
from strata.trust.table import TABLE, Admission
from strata.trust.who import Visitor, Who
from strata.types.barriers import BarrierArrival
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus, incarnation_of, worker_id_of
from strata.types.workers import WorkerSpec

RANKS = 1_000
BARRIERS = 200
POLLS = 30
TASK = "train-12345678"


class _Owner:
    """As much of a call as a servicer looks at."""

    caller = Admission(Visitor(Who.OWNER), TABLE["/strata.control.Control/GetTask"])


async def _training(folder: Path) -> Coordinator:
    """A task whose ranks have met at many barriers."""
    coordinator = Coordinator(ClusterState(StateConfig()), SqliteJournal(folder), SystemClock())
    await coordinator.open()
    spec = TaskSpec(name="train", worker_count=RANKS, entrypoint=("python", "train.py"))
    coordinator.apply(c.SubmitTask(task_id=TASK, spec=spec))
    course = TaskCourse(placement=tuple(f"node-{rank // 8}" for rank in range(RANKS)))
    started = c.ChangeTask(task_id=TASK, status=TaskStatus.RUNNING, reason="attempt 1", attempt=1, course=course)
    coordinator.apply(started)
    members = [(worker_id_of(TASK, rank), incarnation_of(TASK, 1, rank)) for rank in range(RANKS)]
    for rank, (name, incarnation) in enumerate(members):
        worker = WorkerSpec(worker_id=name, task_id=TASK, incarnation=incarnation, rank=rank, hostname="node")
        coordinator.apply(c.RegisterWorker(spec=worker))
    for step in range(BARRIERS):
        for rank, (name, incarnation) in enumerate(members):
            arrival = BarrierArrival(
                worker_id=name,
                barrier_id="step",
                step=step,
                request_id=f"{rank:08x}{step:08x}",
                incarnation=incarnation,
            )
            coordinator.apply(c.Arrive(arrival=arrival))
    return coordinator


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        await _measure(await _training(Path(folder)))


async def _measure(coordinator: Coordinator) -> None:
    service = ControlService(coordinator, VitalsFeed(coordinator))
    owner = cast("Any", _Owner())
    times: dict[str, list[float]] = {"GetTask": [], "the first message": []}
    sizes = {}
    for _ in range(POLLS):
        began = time.thread_time()
        sizes["GetTask"] = len((await service.GetTask(ct.TaskRef(task_id=TASK), owner)).SerializeToString())
        times["GetTask"].append(time.thread_time() - began)
        began = time.thread_time()
        async for update in service.WatchState(ct.WatchRequest(), owner):
            sizes["the first message"] = len(update.SerializeToString())
            break
        times["the first message"].append(time.thread_time() - began)
    for name, taken in times.items():
        sys.stdout.write(f"{name}: {sizes[name]:,} bytes, {statistics.median(taken) * 1e3:.2f} ms\n")
    coordinator.close()


if __name__ == "__main__":
    asyncio.run(main())
