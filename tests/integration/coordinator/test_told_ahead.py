"""A coordinator that is killed between the release of the first ranks and the disk (ADR 47). The ranks themselves kill
it, with the first word that one of them hears.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import grpc

from strata.client.tie import Tie
from strata.coordinator.journal.sqlite import read_journal
from strata.errors import BarrierBroken, Fenced, StrataError
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import coordinator_pb2_grpc as pb_grpc
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.tied_rank import TiedRank
from tests.support.waiting import eventually

NUMBER = 60  # told in three turns of the loop
PATIENCE_S = 60.0

Told = pb.BarrierResponse | StrataError


class Crowd:
    """Ranks with ties of their own. `release` is done with what all of them were told."""

    def __init__(self, coordinator: CoordinatorProcess) -> None:
        self._coordinator = coordinator
        self.ties = [Tie(TiedRank(f"w{rank}"), (coordinator.address,)) for rank in range(NUMBER)]
        self._running: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        async with grpc.aio.insecure_channel(self._coordinator.address) as channel:
            register = pb_grpc.CoordinatorStub(channel).RegisterWorker
            for rank in range(NUMBER):
                await register(pb.WorkerInfo(worker_id=f"w{rank}", task_id="t", incarnation="i"))
        self._running = [asyncio.create_task(tie.run()) for tie in self.ties]
        await asyncio.gather(*(tie.beat() for tie in self.ties))

    async def stop(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.wait(self._running)

    def arrive(self, step: int, on_told: "asyncio.Future[int] | None" = None) -> "list[asyncio.Future[Told]]":
        """All of them. With the first one that is released the coordinator is dead."""
        loop = asyncio.get_running_loop()
        told: list[asyncio.Future[Told]] = [loop.create_future() for _ in self.ties]

        def on_result(rank: int, result: Told) -> None:
            if told[rank].done():  # the test has ended
                return
            if on_told is not None and not on_told.done():
                os.kill(self._coordinator.pid, signal.SIGKILL)
                on_told.set_result(rank)
            told[rank].set_result(result)

        for rank, tie in enumerate(self.ties):
            request = pb.BarrierRequest(
                worker_id=f"w{rank}", barrier_id="b", step=step, incarnation="i", generation=NUMBER
            )
            tie.arrive(request, lambda result, rank=rank: on_result(rank, result))  # type: ignore[misc]  # lambdas
        return told


async def killed_at_release(coordinator: CoordinatorProcess, crowd: Crowd) -> "list[asyncio.Future[Told]]":
    """Some ranks are released, others were not told, and the journal knows of nothing: then it is dead. Most often the
    first attempt is such a one."""
    for step in range(1, 20):
        first: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        told = crowd.arrive(step, first)
        await asyncio.wait_for(first, PATIENCE_S)
        await asyncio.to_thread(coordinator.kill)
        await asyncio.sleep(0)
        kinds = [record.kind for record in read_journal(coordinator.folder / "coordinator").records]
        if kinds.count("BarrierReleased") == step - 1 and not all(item.done() for item in told):
            return told
        await asyncio.to_thread(coordinator.start)
        await answers(told)
    raise AssertionError("the coordinator was never between")


async def answers(told: "list[asyncio.Future[Told]]") -> list[Told]:
    return await asyncio.wait_for(asyncio.gather(*told), PATIENCE_S)


def places(told: list[Told]) -> list[int]:
    assert all(isinstance(item, pb.BarrierResponse) for item in told), told
    return sorted(item.arrival_order for item in told if isinstance(item, pb.BarrierResponse))


@contextlib.asynccontextmanager
async def crowd_of(coordinator: CoordinatorProcess) -> AsyncIterator[Crowd]:
    crowd = Crowd(coordinator)
    await crowd.start()
    try:
        yield crowd
    finally:
        await crowd.stop()


async def test_a_release_that_some_have_heard_is_told_to_all_after_a_kill(tmp_path: Path) -> None:
    with CoordinatorProcess(tmp_path / "data", HEARTBEAT_TIMEOUT="60") as coordinator:
        async with crowd_of(coordinator) as crowd:
            told = await killed_at_release(coordinator, crowd)
            await asyncio.to_thread(coordinator.start)
            assert places(await answers(told)) == list(range(1, NUMBER + 1))
            assert places(await answers(crowd.arrive(100))) == list(range(1, NUMBER + 1))


async def test_who_passed_a_barrier_that_a_power_failure_undid_does_not_go_on(tmp_path: Path) -> None:
    """The kernel's memory is gone with the power: here, the file that only that has. The ranks are on other hosts."""
    with CoordinatorProcess(tmp_path / "data", HEARTBEAT_TIMEOUT="60") as coordinator:
        async with crowd_of(coordinator) as crowd:
            told = await killed_at_release(coordinator, crowd)
            (coordinator.folder / "coordinator" / "ahead").unlink()
            await asyncio.to_thread(coordinator.start)
            results = await answers(told)
            passed = {f"w{rank}" for rank, result in enumerate(results) if isinstance(result, pb.BarrierResponse)}
            others = [result for result in results if not isinstance(result, pb.BarrierResponse)]
            assert passed
            assert others
            for other in others:  # who waited again when one of them was lost, and who came after that
                assert isinstance(other, BarrierBroken | Fenced), other
                assert not isinstance(other, BarrierBroken) or set(other.missing) <= passed

            def lost() -> dict[str, str]:
                workers = coordinator.state()["workers"]
                return {item["worker_id"]: item["reason"] for item in workers if item["state"] == "lost"}

            await asyncio.to_thread(eventually, "their end", lambda: lost().keys() == passed)
            assert all("just before the coordinator's host failed" in reason for reason in lost().values())
            again = await answers([crowd.arrive(100)[int(name[1:])] for name in passed])
            assert all(isinstance(result, Fenced) for result in again), again
