"""Attempts are kept and found again; ranks are looked at; the store is asked once for what cannot change any more."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from strata.clock import ManualClock
from strata.cluster.events import TaskChanged, encode_event
from strata.cluster.members import Worker
from strata.cluster.tasks import Task
from strata.errors import StoreUnavailable
from strata.observatory.answers.status import Status
from strata.observatory.background.batches import BatchQueue
from strata.observatory.background.setaside import SetAside
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.cluster.timelines import Timelines
from strata.observatory.cluster.vitals import WorkerVitals
from strata.observatory.store.superseded import Which
from strata.observatory.store.table import Table
from strata.observatory.stream.broadcaster import Broadcaster
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.tasks import TaskCourse, TaskStatus
from strata.types.workers import MemberState
from tests.support.answers import partly


class EventStore:
    """Keeps accepted events and answers the two questions of a timeline."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.points: dict[str, Any] = {"first_ms": 0, "top_step": 0, "n": 0, "back_ms": 0, "before": 0}
        self.asked: list[Mapping[str, Any]] = []
        self.ready = True
        self.meanwhile: Callable[[], None] = lambda: None

    async def accept(self, batch: Batch) -> None:
        self.events.extend(batch.events)

    async def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Table:
        if not self.ready:
            raise StoreUnavailable("away")
        if "metric_points" in sql:
            self.asked.append(parameters or {})
            self.meanwhile()
            return Table.from_rows([self.points])
        if "argMax" in sql:
            watched = {row.task_id: row.message for row in self.events if row.kind == "attempt_watched"}
            return Table.from_rows([{"task_id": name, "message": text} for name, text in watched.items()])
        rows = [
            {
                "task_id": row.task_id, "kind": row.kind, "attempt": row.attempt, "message": row.message,
                "rank": row.rank if row.HasField("rank") else None,
                "step": row.step if row.HasField("step") else None, "ms": row.event_time_ms,
            }
            for row in reversed(self.events)
            if row.kind != "attempt_watched"
        ]  # fmt: skip
        return Table.from_rows(rows)

    async def insert(self, table: str, rows: Table, *, token: str) -> None:
        raise NotImplementedError

    async def curves(self, where: Mapping[str, Any], buckets: int, which: Which) -> Table:
        raise NotImplementedError

    async def command(self, sql: str, parameters: Mapping[str, Any] | None = None) -> None:
        raise NotImplementedError

    async def wait_ready(self) -> None: ...


class World:
    """A published that is told events by hand, and a timeline book over it."""

    def __init__(self, store: EventStore) -> None:
        self.clock = ManualClock()
        aside = SetAside(self.clock, lambda _: None)
        self.published = PublishedCluster(
            Broadcaster(lambda _: b"", self.clock), self.clock, lambda: partly(Status), aside
        )
        self.store = store
        self.queue = BatchQueue(store.accept, aside)
        self.timelines = Timelines(self.published, store, self.queue, self.clock, lambda task_id: [task_id])
        self.seq = 0

    def change(self, status: str, attempt: int, at: float, step: int = -1, reason: str = "", size: int = 0) -> None:
        self.seq += 1
        told = {"reason": reason, "at": at, "step": step, "placement": ("host",) * size}
        event = TaskChanged(task_id="t1", status=status, attempt=attempt, **told)  # type: ignore[arg-type]  # its own fields
        self.published.apply(self.seq, "TaskChanged", encode_event(event))

    def rank(self, name: str, **vitals: Any) -> None:
        self.published.followed.records.workers[name] = partly(
            Worker, worker_id=name, task_id="t1", state=MemberState.READY
        )
        self.published.followed.vitals[name] = WorkerVitals(**vitals)

    def status(self, status: TaskStatus) -> None:
        self.published.followed.records.tasks["t1"] = partly(
            Task, course=TaskCourse(), task_id="t1", status=status, attempt=1
        )


async def test_attempts_are_kept_and_found_again() -> None:
    store = EventStore()
    world = World(store)
    await world.queue.start()
    world.change("queued", 0, 90.0)
    world.change("running", 1, 100.0, reason="attempt 1")
    world.change("recovering", 1, 160.0, reason="rank 2 was killed by signal 9")
    world.change("running", 2, 165.0, step=40, reason="attempt 2", size=3)
    async with asyncio.timeout(60):
        while len(store.events) < 3:  # noqa: ASYNC110 - kept by a task of its own
            await asyncio.sleep(0)
    await world.queue.stop()
    seen = await world.timelines.view("t1")

    later = World(store)
    await later.timelines.load(store)
    later.change("running", 2, 165.0, step=40, reason="attempt 2")  # the coordinator repeats its newest
    found = await later.timelines.view("t1")
    assert found.attempts == seen.attempts
    assert [(one.attempt, one.size, one.status, one.resume_step) for one in found.attempts] == [
        (1, None, "recovering", None),
        (2, 3, "running", 40),
    ]
    assert (await later.timelines.view("unknown")).attempts == []


async def test_points_are_looked_at_once_per_attempt() -> None:
    store = EventStore()
    world = World(store)
    world.change("running", 1, 100.0)
    world.clock.advance(max(0.0, 200.0 - world.clock.wall()))
    first = (await world.timelines.view("t1")).attempts[0]
    assert (first.working_at_ms, first.top_step) == (None, None), "no point yet"
    store.points = {"first_ms": 103_000, "top_step": 7, "n": 12, "back_ms": 0, "before": 0}
    assert (await world.timelines.view("t1")).attempts[0].working_at_ms == 103_000
    world.rank("w0", current_step=25, section="")
    asked = len(store.asked)
    assert (await world.timelines.view("t1")).attempts[0].top_step == 25, "its ranks say how far it is"
    assert len(store.asked) == asked, "and the store is left alone"
    world.change("recovering", 1, 160.0)
    world.change("running", 2, 165.0, step=20)
    store.points = {"first_ms": 103_000, "top_step": 31, "n": 40, "back_ms": 140_000, "before": 20}
    ended = (await world.timelines.view("t1")).attempts[0]
    assert (ended.top_step, ended.lost_steps) == (31, 11)
    assert ended.lost_s == pytest.approx(20.0)
    assert store.asked[asked]["back_to"] == 20
    store.ready = False
    assert (await world.timelines.view("t1")).attempts[0] == ended, "a store that is away takes nothing back"


async def test_an_attempt_may_begin_while_the_store_is_asked() -> None:
    store = EventStore()
    world = World(store)
    world.change("running", 1, 100.0)
    world.change("recovering", 1, 160.0)
    store.meanwhile = lambda: world.change("running", 2, 165.0, step=40)
    assert [one.attempt for one in (await world.timelines.view("t1")).attempts] == [1, 2]


async def test_ranks_are_looked_at_only_while_they_work() -> None:
    world = World(EventStore())
    world.change("running", 1, 100.0)
    world.status(TaskStatus.RUNNING)
    world.rank("w0", current_step=0)
    world.timelines.look(1.0)
    world.rank("w0", current_step=5, section="barrier epoch-0", at_barrier=True)
    world.rank("w1", current_step=5, section=None, state="training")
    world.timelines.look(1.0)
    world.store.points = {"first_ms": 100_000, "top_step": 5, "n": 2, "back_ms": 0, "before": 0}
    world.clock.advance(max(0.0, 101.0 - world.clock.wall()))
    shares = (await world.timelines.view("t1")).shares
    assert shares is not None
    assert shares.training_s == pytest.approx(shares.barrier_s)
    assert shares.training_s
    world.status(TaskStatus.RECOVERING)
    world.timelines.look(5.0)
    later = (await world.timelines.view("t1")).shares
    assert later is not None
    assert later.training_s == shares.training_s, "nobody works meanwhile"


async def test_goodput_is_measured_of_tasks_that_have_not_ended() -> None:
    world = World(EventStore())
    world.change("running", 1, 100.0)
    world.status(TaskStatus.RUNNING)
    world.rank("w0", current_step=5, section="barrier epoch-0", at_barrier=True)
    world.rank("w1", current_step=5, section=None, state="training")
    await world.timelines.measure()
    assert world.timelines.goodput == {}, "nobody has looked yet"
    world.store.points = {"first_ms": 100_000, "top_step": 5, "n": 2, "back_ms": 0, "before": 0}
    world.clock.advance(max(0.0, 140.0 - world.clock.wall()))
    world.timelines.look(world.clock.wall() - 100.0)
    await world.timelines.measure()
    assert world.timelines.goodput == {"t1": pytest.approx(50.0)}
    world.status(TaskStatus.COMPLETED)
    await world.timelines.measure()
    assert world.timelines.goodput == {}


async def test_what_ranks_were_seen_doing_outlives_a_restart() -> None:
    store = EventStore()
    world = World(store)
    await world.queue.start()
    world.change("running", 1, 100.0)
    world.status(TaskStatus.RUNNING)
    world.rank("w0", current_step=5, section="")
    for _ in range(50):
        world.timelines.look(1.0)
    world.change("completed", 1, 155.0)
    async with asyncio.timeout(60):
        while len(store.events) < 3:  # noqa: ASYNC110 - kept by a task of its own
            await asyncio.sleep(0)
    await world.queue.stop()
    store.points = {"first_ms": 103_000, "top_step": 31, "n": 40, "back_ms": 0, "before": 0}

    later = World(store)
    await later.timelines.load(store)
    shares = (await later.timelines.view("t1")).shares
    assert shares is not None
    assert shares.training_s == pytest.approx(52.0)
    assert shares.unmeasured_s == 0.0
