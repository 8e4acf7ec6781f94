"""Any schedule of joins, kills and commits gives the same committed samples as the run that nobody disturbed."""

import json
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from strata.sharding.cursor import QueueCursor, SyncCursor
from strata.sharding.lanes import LaneLayout, OrderSpec
from strata.sharding.order import EpochOrder
from strata.sharding.sticky import plan_sticky
from strata.sharding.table import Table

Sample = tuple[int, int, int]
EVENTS = st.lists(
    st.one_of(
        st.just(("step", 0)),
        st.just(("commit", 0)),
        st.tuples(st.just("kill"), st.integers(0, 7)),
        st.tuples(st.just("join"), st.integers(0, 7)),
        st.just(("coordinator restarts", 0)),
    ),
    max_size=60,
)
SIZES = st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(lambda sizes: sum(sizes) > 0)


@dataclass
class SyncJob:
    """A data-parallel job in miniature: lanes dealt by the sticky table, rollback to the cursor on any change."""

    order: EpochOrder
    members: set[str]
    epochs: int = 2
    committed: list[list[Sample]] = field(default_factory=list)
    pending: list[list[Sample]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cursor = SyncCursor(digest=self.order.spec.digest, seed=self.order.spec.seed)
        self.table: Table | None = None
        self.recover()

    def recover(self) -> None:
        """Every change of membership: deal the lanes again and go back to what is committed, as read from JSON."""
        self.table = plan_sticky(self.order.spec.num_lanes, self.members, self.table)
        self.cursor = SyncCursor.from_dict(json.loads(json.dumps(self.cursor.to_dict())))
        self.cursor.check(self.order.spec.digest)
        self.epoch, self.offset = self.cursor.epoch, self.order.offset_of(self.cursor.position)
        self.pending = []

    def step(self) -> bool:
        if not self.order.steps_from(self.offset):
            self.epoch, self.offset = self.epoch + 1, 0
        if self.epoch >= self.epochs:
            return False
        assert self.table is not None
        parts: list[tuple[int, list[Sample]]] = []
        for slot in self.table.slots:
            mine = self.order.batch_at(self.epoch, self.offset, self.table.units_of(slot).tolist())
            for lane in np.unique(mine.lanes):
                chosen = mine.lanes == lane
                rows = zip(mine.shards[chosen].tolist(), mine.rows[chosen].tolist(), strict=True)
                parts.append((int(lane), [(self.epoch, shard, row) for shard, row in rows]))
        self.pending.append([sample for _, part in sorted(parts) for sample in part])
        self.offset += self.order.per_lane
        return True

    def commit(self) -> None:
        """A checkpoint: the model and the cursor become durable together."""
        self.committed += self.pending
        self.pending = []
        position = self.order.position_of(self.offset)
        self.cursor = SyncCursor(digest=self.cursor.digest, seed=self.cursor.seed, epoch=self.epoch, position=position)

    def finish(self) -> list[list[Sample]]:
        while self.step():
            pass
        self.commit()
        return self.committed


def job(sizes: list[int], lanes: int, world: int) -> SyncJob:
    spec = OrderSpec(manifest="m", seed=5, num_lanes=lanes, window=2)
    order = EpochOrder(LaneLayout(np.array(sizes, dtype=np.int64), spec), lanes * 2)
    return SyncJob(order, {f"w{rank}" for rank in range(world)})


@given(sizes=SIZES, lanes=st.sampled_from([1, 3, 8]))
def test_every_world_size_reads_the_same_batches(sizes: list[int], lanes: int) -> None:
    expected = job(sizes, lanes, 1).finish()
    assert sorted(sample for batch in expected for sample in batch) == [
        (epoch, shard, row) for epoch in range(2) for shard, size in enumerate(sizes) for row in range(size)
    ]
    for world in (2, 3, 8):
        assert job(sizes, lanes, world).finish() == expected


@settings(max_examples=100)
@given(sizes=SIZES, lanes=st.sampled_from([1, 3, 8]), world=st.sampled_from([1, 2, 3, 8]), events=EVENTS)
def test_any_schedule_commits_the_undisturbed_sequence(
    sizes: list[int], lanes: int, world: int, events: list[tuple[str, int]]
) -> None:
    expected = job(sizes, lanes, 1).finish()
    disturbed = job(sizes, lanes, world)
    for kind, number in events:
        if kind == "step":
            disturbed.step()
        elif kind == "commit":
            disturbed.commit()
        else:
            if kind == "join":
                disturbed.members.add(f"w{number}")
            elif kind == "kill":
                disturbed.members.discard(f"w{number}")
                disturbed.members = disturbed.members or {"w0"}
            disturbed.recover()
    assert disturbed.finish() == expected


@settings(max_examples=100)
@given(sizes=SIZES, data=st.data())
def test_queue_commits_each_sample_exactly_once(sizes: list[int], data: st.DataObject) -> None:
    array = np.array(sizes, dtype=np.int64)
    queue = QueueCursor(array)
    held: dict[str, tuple[int, int]] = {}
    ledger: list[tuple[int, int]] = []
    for _ in range(data.draw(st.integers(0, 60))):
        worker = f"w{data.draw(st.integers(0, 3))}"
        event = data.draw(st.sampled_from(["work", "work", "kill", "restart"]))
        if event == "kill":
            queue.release(worker)
            held.pop(worker, None)
        elif event == "restart":
            queue = QueueCursor.from_dict(json.loads(json.dumps(queue.to_dict())), array)
            held = {}
        else:
            work(queue, worker, held, ledger, data.draw(st.integers(0, 50)))
    while not queue.finished:
        for worker in ("w0", "w9"):
            work(queue, worker, held, ledger, 50)
        for worker in set(held) - {"w0", "w9"}:
            queue.release(worker)
            del held[worker]
    assert sorted(ledger) == [(shard, row) for shard, size in enumerate(sizes) for row in range(size)]
    assert queue.num_committed == sum(sizes)


def work(
    queue: QueueCursor, worker: str, held: dict[str, tuple[int, int]], ledger: list[tuple[int, int]], rows: int
) -> None:
    claimed = held.pop(worker, None) or queue.claim(worker)
    if claimed is None:
        return
    shard, row = claimed
    upto = min(row + rows, int(queue.sizes[shard]))
    queue.commit(worker, shard, upto)
    ledger.extend((shard, done) for done in range(row, upto))
    if upto < int(queue.sizes[shard]):
        held[worker] = (shard, upto)
