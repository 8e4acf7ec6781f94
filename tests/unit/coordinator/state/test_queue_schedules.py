"""Queue mode under any schedule of joins, kills, commits, lost answers and crashes of the coordinator: in the committed
state every sample of an epoch is there exactly once."""

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strata.cluster.queues import queue_order
from strata.coordinator.state import commands as c
from strata.errors import CheckpointAborted, Fenced
from strata.types.queues import LeaseProgress, QueueGrant, QueueLease, QueueStatus
from tests.support.pure_cluster import PureCluster, caller

SAMPLES, SHARD = 103, 7
EPOCHS = 2


@dataclass
class Reader:
    """A worker as its loader would be: what it holds, how far it is, what it has trained on since the last commit."""

    leases: dict[int, QueueLease] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    fresh: dict[int, list[int]] = field(default_factory=dict)  # lease → samples that are not committed

    def progress(self) -> tuple[LeaseProgress, ...]:
        return tuple(LeaseProgress(lease_id=lease_id, row=row) for lease_id, row in self.rows.items())

    def samples(self) -> list[int]:
        return [sample for part in self.fresh.values() for sample in part]

    def settle(self) -> None:
        """What was trained on is committed; leases that are done are gone."""
        for lease_id in [number for number in self.leases if self.rows[number] == self.leases[number].num_rows]:
            del self.leases[lease_id], self.rows[lease_id]
        self.fresh.clear()


class Job:
    """A cluster, its readers, and the ledger of what is committed."""

    def __init__(self, world: int, task_id: str = "") -> None:
        self.cluster = PureCluster()
        self.cluster.dataset("d", SAMPLES, SHARD)
        self.order = queue_order(self.cluster.state.datasets.spec("d"))
        self.task_id = task_id
        if task_id:
            self.cluster.submit(task_id, worker_count=world)
        self.names = [f"w{number}" for number in range(world)]
        self.readers: dict[str, Reader] = {}
        self.epoch = 0
        self.ledger: list[tuple[int, int]] = []
        for name in self.names:
            self.join(name)

    def join(self, name: str) -> None:
        values = {"task_id": self.task_id, "rank": self.names.index(name)} if self.task_id else {}
        self.cluster.join(name, incarnation=f"{name}-{len(self.cluster.events)}", **values)
        self.readers[name] = Reader()

    def claim(self, name: str) -> QueueGrant:
        held = self.readers[name].progress()
        command = c.ClaimShard(caller=caller(name), dataset_id="d", epoch=self.epoch, held=held)
        grant = self.cluster.ask(command)
        assert isinstance(grant, QueueGrant)
        return grant

    def read(self, name: str, count: int) -> QueueStatus:
        """Goes on with what it has, or asks for more."""
        reader = self.readers[name]
        open_ = [lease for lease in reader.leases.values() if reader.rows[lease.lease_id] < lease.num_rows]
        if not open_:
            grant = self.claim(name)
            if grant.lease is None:
                return grant.status
            assert grant.lease.lease_id not in reader.leases
            reader.leases[grant.lease.lease_id] = grant.lease
            reader.rows[grant.lease.lease_id] = grant.lease.row
            open_ = [grant.lease]
        lease = open_[0]
        row = reader.rows[lease.lease_id]
        upto = min(row + count, lease.num_rows)
        numbers = self.order.rows(lease)[row - lease.row : upto - lease.row]
        reader.fresh.setdefault(lease.lease_id, []).extend(numbers.tolist())
        reader.rows[lease.lease_id] = upto
        return QueueStatus.LEASED

    def commit(self, name: str, *, answered: bool = True) -> None:
        reader = self.readers[name]
        command = c.CommitShards(caller=caller(name), dataset_id="d", epoch=self.epoch, progress=reader.progress())
        self.cluster.ask(command)
        if not answered:
            self.cluster.ask(command)  # the same call again
        self.ledger += [(self.epoch, sample) for sample in reader.samples()]
        reader.settle()

    def crash(self, *, snapshot: bool) -> None:
        if snapshot:
            assert json.dumps(self.cluster.reloaded().dump()) == json.dumps(self.cluster.state.dump())
        self.cluster.restart()

    def check(self) -> None:
        expected = [(epoch, sample) for epoch in range(self.epoch + 1) for sample in range(SAMPLES)]
        assert sorted(self.ledger) == expected
        queue = self.cluster.state.queues.queues[self.task_id, "d"]
        assert queue.num_committed == SAMPLES
        assert queue.finished


OPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["read", "read", "read", "commit", "repeat", "kill", "zombie", "leave", "lose answer", "crash"]
        ),
        st.integers(0, 7),
        st.integers(1, 9),
    ),
    max_size=80,
)


@pytest.mark.parametrize("world", [1, 2, 3, 8])
@settings(max_examples=25, deadline=None)
@given(ops=OPS)
def test_workers_that_commit_by_themselves(world: int, ops: list[tuple[str, int, int]]) -> None:
    job = Job(world)
    for name, number, count in ops:
        worker = job.names[number % world]
        _disturb(job, name, worker, count)
    for _ in range(500):
        statuses = {job.read(name, 50) for name in job.names}
        for name in job.names:
            job.commit(name)
        if statuses == {QueueStatus.FINISHED}:
            job.check()
            if job.epoch + 1 == EPOCHS:
                return
            job.epoch += 1
    pytest.fail("the epochs never end")


def _disturb(job: Job, name: str, worker: str, count: int) -> None:
    match name:
        case "read":
            job.read(worker, count)
        case "commit" | "repeat":
            job.commit(worker, answered=name == "commit")
        case "kill":
            job.cluster.lose(worker)
            job.join(worker)
        case "zombie":
            """It was declared dead, came back under its name, and still means to commit what it read before."""
            old = job.readers[worker]
            job.cluster.lose(worker)
            job.join(worker)
            if old.rows:
                with job.cluster.refuses(Fenced):
                    job.cluster.ask(
                        c.CommitShards(caller=caller(worker), dataset_id="d", epoch=0, progress=old.progress())
                    )
        case "leave":
            job.commit(worker)
            job.cluster.leave(worker)
            job.join(worker)
        case "lose answer":
            job.claim(worker)
        case "crash":
            job.crash(snapshot=count % 2 == 0)


class Gang(Job):
    """Ranks that save together. `store` is what the checkpoints' folder holds: step → the ledger in that model."""

    def __init__(self, world: int) -> None:
        super().__init__(world, "t")
        self.store: dict[int, list[tuple[int, int]]] = {}
        self.step = 0
        self.restored: set[str] = set(self.names)

    def save(self, *, votes: int, written: bool, reported: bool) -> None:
        """A checkpoint that may break off: after some votes, before or after COMMIT.json, before or after the report.
        Whoever breaks it off is dead, and with it the gang."""
        self.step += 10
        for name in self.names:
            progress = self.readers[name].progress()
            command = c.CommitShards(
                caller=caller(name), dataset_id="d", epoch=self.epoch, progress=progress, step=self.step
            )
            self.cluster.ask(command)
        fresh = [(self.epoch, sample) for name in self.names for sample in self.readers[name].samples()]
        attempt = self.cluster.begin(self.names[0], step=self.step)
        for name in self.names[:votes]:
            self.cluster.vote(name, attempt.attempt)
        complete = votes >= len(self.names)
        if complete and written:
            self.store[self.step] = self.ledger + fresh
        if complete and written and reported:
            self.cluster.commit(self.names[0], attempt.attempt)
            self.ledger = self.store[self.step]
            for reader in self.readers.values():
                reader.settle()
        else:
            self.restart()

    def restart(self, *, corrupt: bool = False) -> None:
        """All ranks die and come back. Each goes to the newest good checkpoint when it first gets to run."""
        if corrupt and self.store:
            del self.store[max(self.store)]
        self.cluster.lose(*self.names)
        for name in self.names:
            self.join(name)
        self.restored = set()
        self.ledger = self.store[max(self.store)] if self.store else []
        self.epoch = max((epoch for epoch, _ in self.ledger), default=0)

    def read(self, name: str, count: int) -> QueueStatus:
        self.restore(name)
        return super().read(name, count)

    def restore(self, name: str) -> None:
        if name not in self.restored:
            step = max(self.store, default=-1)
            self.cluster.ask(c.RestoreQueue(caller=caller(name), dataset_id="d", step=step))
            self.restored.add(name)


GANG_OPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 7), st.integers(1, 9)),
        st.tuples(st.just("read"), st.integers(0, 7), st.integers(1, 9)),
        st.tuples(st.just("save"), st.integers(0, 9), st.integers(0, 5)),
        st.tuples(st.sampled_from(["kill", "corrupt", "crash"]), st.integers(0, 1), st.just(0)),
    ),
    max_size=60,
)


@pytest.mark.parametrize("world", [1, 2, 3, 8])
@settings(max_examples=25, deadline=None)
@given(ops=GANG_OPS)
def test_ranks_that_save_together(world: int, ops: list[tuple[str, int, int]]) -> None:
    gang = Gang(world)
    for name, number, how in ops:
        if name == "read":
            gang.read(gang.names[number % world], how)
        elif name == "save":
            for rank in gang.names:
                gang.restore(rank)
            gang.save(votes=number if how else world, written=how != 1, reported=how > 2 or not how)
        elif name == "crash":
            gang.crash(snapshot=bool(number))
        else:
            gang.restart(corrupt=name == "corrupt")
    for _ in range(500):
        statuses = {gang.read(name, 50) for name in gang.names}
        if statuses <= {QueueStatus.DRAINED, QueueStatus.FINISHED}:
            gang.save(votes=world, written=True, reported=True)
        if statuses == {QueueStatus.FINISHED}:
            gang.check()
            if gang.epoch + 1 == EPOCHS:
                return
            gang.epoch += 1
    pytest.fail("the epochs never end")


def test_a_checkpoint_that_is_reported_late_takes_nothing_from_those_who_went_on() -> None:
    """Rank 1 dies after every vote; its rows are held back until the checkpoint is decided, then they count."""
    gang = Gang(2)
    for name in gang.names:
        gang.read(name, 3)
    progress = {name: gang.readers[name].progress() for name in gang.names}
    for name in gang.names:
        gang.cluster.ask(c.CommitShards(caller=caller(name), dataset_id="d", epoch=0, progress=progress[name], step=10))
    attempt = gang.cluster.begin("w0", step=10)
    for name in gang.names:
        gang.cluster.vote(name, attempt.attempt)
    gang.cluster.lose("w1")
    gang.join("w1")
    held_back = progress["w1"][0]
    grant = gang.claim("w1")
    assert grant.lease is not None
    assert grant.lease.row == 0, "the shard that the dead rank left is not lent while its rows may still count"
    gang.cluster.commit("w0", attempt.attempt)
    queue = gang.cluster.state.queues.queues["t", "d"]
    assert queue.num_committed == 6
    gang.readers["w1"].leases[grant.lease.lease_id] = grant.lease
    gang.readers["w1"].rows[grant.lease.lease_id] = grant.lease.num_rows
    following = gang.claim("w1").lease
    assert following is not None
    assert following.row == held_back.row


def test_an_aborted_checkpoint_commits_nothing() -> None:
    gang = Gang(2)
    gang.read("w0", 3)
    gang.cluster.ask(
        c.CommitShards(caller=caller("w0"), dataset_id="d", epoch=0, progress=gang.readers["w0"].progress(), step=10)
    )
    attempt = gang.cluster.begin("w0", step=10)
    gang.cluster.vote("w0", attempt.attempt)
    gang.cluster.lose("w1")
    with pytest.raises(CheckpointAborted):
        gang.cluster.vote("w0", attempt.attempt)
    assert gang.cluster.state.queues.queues["t", "d"].num_committed == 0


def test_a_fenced_generation_cannot_commit() -> None:
    gang = Gang(2)
    before = gang.cluster.generation("t")
    gang.read("w0", 3)
    progress = gang.readers["w0"].progress()
    gang.cluster.lose("w1")
    stale = caller("w0", generation=before)
    with gang.cluster.refuses(Fenced, "generation"):
        gang.cluster.ask(c.CommitShards(caller=stale, dataset_id="d", epoch=0, progress=progress))
    with gang.cluster.refuses(Fenced, "generation"):
        gang.cluster.ask(c.ClaimShard(caller=stale, dataset_id="d", epoch=0, held=progress))
    with gang.cluster.refuses(Fenced, "generation"):
        gang.cluster.ask(c.RestoreQueue(caller=stale, dataset_id="d", step=-1))
