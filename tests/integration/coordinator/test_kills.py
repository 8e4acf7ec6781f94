"""kill -9 of the coordinator at random moments under load, judged by what its clients were told.

`--kills 200` is the full measure. Each kill costs a start of the coordinator, about a second: the default of five takes
longer than 5 s for that reason.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import grpc
import pytest

from strata.client.plain_rank import PlainRank
from strata.client.tie_thread import TieThread
from strata.client.workers import Member
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from tests.support.coordinator_process import CHANNEL_OPTIONS, CoordinatorProcess

pytestmark = pytest.mark.slow

NUM_WORKERS = 6
_T = TypeVar("_T")


@dataclass(slots=True)
class Told:
    """What one worker was told, in order."""

    generations: list[int] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)  # its place in each barrier
    tasks: dict[str, list[str]] = field(default_factory=dict)  # request → every answer
    checkpoints: list[str] = field(default_factory=list)
    terms: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Worker(threading.Thread):
    """Keeps calling, and repeats a call with its request id until it is answered. Never registers twice."""

    def __init__(self, number: int, coordinator: CoordinatorProcess) -> None:
        super().__init__(name=f"w{number}", daemon=True)
        self.told = Told()
        self._rng = random.Random(number)
        self.last_round = 1 << 60
        self._channel = grpc.insecure_channel(coordinator.address, options=CHANNEL_OPTIONS)
        self._token = (("authorization", f"Bearer {coordinator.token()}"),)
        self._workers = CoordinatorStub(self._channel)
        self._control = ControlStub(self._channel)
        self._incarnation = f"start-{number}"
        self._address = coordinator.address
        self._by_tie = number % 2 == 0  # the others hold a plain call: both roads lead to one barrier
        self._tie: TieThread | None = None

    def register(self) -> None:
        info = pb.WorkerInfo(worker_id=self.name, incarnation=self._incarnation)
        config = self._until_answered(lambda: self._workers.RegisterWorker(info, timeout=5))
        self._hear(config.generation, config.term)
        self._member = Member(
            worker_id=self.name,
            rank=config.rank,
            world_size=NUM_WORKERS,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            generation=0,
            incarnation=self._incarnation,
            term=config.term,
        )
        if self._by_tie:
            rank = PlainRank(self._member)
            self._tie = TieThread(rank, (self._address,), beat_s=0.2, patience_s=60)

    def run(self) -> None:
        try:
            number = 0
            while number < self.last_round:
                self._one_round(number)
                number += 1
        except grpc.RpcError as error:
            self.told.errors.append(f"{error.code()}: {error.details()}")
        finally:
            self._channel.close()
            if self._tie is not None:
                self._tie.close()

    def _one_round(self, number: int) -> None:
        self._submit(number)
        self._notify(number)
        beat = pb.HeartbeatRequest(worker_id=self.name, incarnation=self._incarnation)
        answer = self._until_answered(lambda: self._workers.Heartbeat(beat, timeout=5))
        self._hear(answer.generation, answer.term)
        if self._tie is not None:
            met = self._tie.barrier(self._member, "round", timeout_s=60)
            assert met.participants == NUM_WORKERS
            self.told.orders.append(met.arrival_order)
            return
        arrival = pb.BarrierRequest(
            worker_id=self.name,
            barrier_id="round",
            incarnation=self._incarnation,
            generation=self.told.generations[-1],
            request_id=f"{self.name}-{number}",
        )
        released = self._until_answered(lambda: self._workers.WaitBarrier(arrival, timeout=30))
        assert released.participants == NUM_WORKERS
        self.told.orders.append(released.arrival_order)

    def _submit(self, number: int) -> None:
        request_id = f"{self.name}-task-{number}"
        spec = ct.TaskSpec(name="job", worker_count=1, entrypoint=["true"], request_id=request_id)
        answers = self.told.tasks.setdefault(request_id, [])
        for _ in range(self._rng.choice((1, 1, 2))):  # a retry although the answer came
            ack = self._until_answered(lambda: self._control.SubmitTask(spec, timeout=5, metadata=self._token))
            answers.append(ack.task_id)

    def _notify(self, number: int) -> None:
        name = f"{self.name}-{number}"
        info = pb.CheckpointInfo(worker_id=self.name, checkpoint_id=name, step=number, incarnation=self._incarnation)
        self._until_answered(lambda: self._workers.NotifyCheckpoint(info, timeout=5))
        self.told.checkpoints.append(name)

    def _hear(self, generation: int, term: int) -> None:
        self.told.generations.append(generation)
        self.told.terms.append(term)

    def _until_answered(self, call: Callable[[], _T]) -> _T:
        while True:
            try:
                return call()
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                    raise
                time.sleep(0.01)  # it is being killed or started: nothing to wait for but itself


@pytest.mark.timeout(3600)
def test_nothing_acknowledged_is_lost(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    num_kills = request.config.getoption("--kills")
    rng = random.Random(num_kills)
    with CoordinatorProcess(tmp_path / "data", STRATA_LOG="warning") as coordinator:
        workers = [Worker(number, coordinator) for number in range(NUM_WORKERS)]
        for worker in workers:
            worker.register()
        for worker in workers:
            worker.start()
        for _ in range(num_kills):
            time.sleep(rng.uniform(0.0, 0.4))  # the random moment itself
            coordinator.kill()
            coordinator.start()
        last_round = 10 + max(len(worker.told.orders) for worker in workers)
        for worker in workers:
            worker.last_round = last_round
        for worker in workers:
            worker.join(120)
        assert not any(worker.is_alive() for worker in workers), "a release was lost: somebody waits for ever"
        told = [worker.told for worker in workers]
        assert [item.errors for item in told] == [[]] * NUM_WORKERS
        _check_barriers(told)
        _check_numbers(told, num_kills)
        _check_records(told, coordinator)


def _check_barriers(told: list[Told]) -> None:
    """Every barrier has one release, with a place for each: none twice, none lost, none mixed with another round."""
    rounds = {len(item.orders) for item in told}
    assert len(rounds) == 1, f"workers went through {rounds} barriers"
    assert min(rounds) >= 10
    for places in zip(*(item.orders for item in told), strict=True):
        assert sorted(places) == list(range(1, NUM_WORKERS + 1))


def _check_numbers(told: list[Told], num_kills: int) -> None:
    for item in told:
        assert item.generations == sorted(item.generations)
        assert item.terms == sorted(item.terms)
    assert max(item.terms[-1] for item in told) == num_kills + 1


def _check_records(told: list[Told], coordinator: CoordinatorProcess) -> None:
    state = coordinator.state()
    tasks = [task["task_id"] for task in state["tasks"]]
    asked = {request: answers for item in told for request, answers in item.tasks.items()}
    assert all(len(set(answers)) == 1 for answers in asked.values()), "one submission, one task"
    assert sorted(tasks) == sorted(answers[0] for answers in asked.values()), "none lost, none twice"
    kept = {record["id"] for record in state["checkpoints"]}
    newest = [name for item in told for name in item.checkpoints[-100:]]
    assert kept >= set(newest)
    assert {worker["state"] for worker in state["workers"]} == {"ready"}
