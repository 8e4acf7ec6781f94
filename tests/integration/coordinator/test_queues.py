"""Queue mode over the wire: leases outlive the coordinator, not their worker; refusals arrive as what they are."""

from collections.abc import Iterator

import pytest

from strata.client.channel import Channel
from strata.client.datasets import DatasetsClient
from strata.client.queues import QueuesClient
from strata.client.workers import WorkersClient
from strata.errors import Fenced, InvalidArgument, Refused, UnknownDataset
from strata.types.datasets import DatasetSpec
from strata.types.queues import LeaseProgress, QueueStatus
from strata.types.workers import WorkerSpec
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.waiting import eventually


class Worker:
    """A plain worker that takes and commits shards."""

    def __init__(self, channel: Channel, name: str) -> None:
        self._workers = WorkersClient(channel)
        self.member = self._workers.register(WorkerSpec(worker_id=name, incarnation=f"{name}-1"))
        self.queues = QueuesClient(channel, self.member, gang=False)

    def leave(self) -> None:
        self._workers.deregister(self.member)


@pytest.fixture
def channel(coordinator: CoordinatorProcess) -> Iterator[Channel]:
    with Channel(coordinator.address, patience_s=20.0) as channel:
        DatasetsClient(channel).register(DatasetSpec(dataset_id="d", total_samples=25, shard_size=10))
        yield channel


def test_leases_and_commits_survive_a_kill_of_the_coordinator(
    coordinator: CoordinatorProcess, channel: Channel
) -> None:
    worker = Worker(channel, "w0")
    grant = worker.queues.claim("d", 0)
    assert grant.lease is not None
    assert grant.num_samples == 25
    worker.queues.commit("d", 0, [LeaseProgress(lease_id=grant.lease.lease_id, row=4)])
    coordinator.kill()
    coordinator.start()
    again = worker.queues.claim("d", 0)  # it names no lease, as if the first answer had been lost
    assert again.lease is not None
    assert (again.lease.lease_id, again.lease.row) == (grant.lease.lease_id, 4)
    done = [LeaseProgress(lease_id=grant.lease.lease_id, row=grant.lease.num_rows)]
    first, repeated = worker.queues.commit("d", 0, done), worker.queues.commit("d", 0, done)
    assert first.num_committed == repeated.num_committed == grant.lease.num_rows
    assert first.held == ()


def test_the_rest_of_a_silent_worker_goes_to_another(coordinator: CoordinatorProcess, channel: Channel) -> None:
    """The lease of the fixture's coordinator is one second."""
    silent, heir = Worker(channel, "silent"), Worker(channel, "heir")
    lent = silent.queues.claim("d", 0).lease
    assert lent is not None
    silent.queues.commit("d", 0, [LeaseProgress(lease_id=lent.lease_id, row=2)])
    read: dict[int, int] = {}
    shards: dict[int, int] = {}

    def finished() -> bool:
        held = [LeaseProgress(lease_id=number, row=row) for number, row in read.items()]
        grant = heir.queues.claim("d", 0, held)
        if grant.lease is not None:
            read[grant.lease.lease_id] = grant.lease.num_rows
            shards[grant.lease.shard_id] = grant.lease.row
        if grant.status is QueueStatus.DRAINED:
            heir.queues.commit("d", 0, held)
            read.clear()
        return grant.status is QueueStatus.FINISHED

    eventually("the whole epoch", finished, within_s=20)
    assert shards[lent.shard_id] == 2, "it went on where the silent one had committed"
    with pytest.raises(Fenced):
        silent.queues.commit("d", 0, [LeaseProgress(lease_id=lent.lease_id, row=lent.num_rows)])
    following = heir.queues.claim("d", 1)
    assert following.status is QueueStatus.LEASED
    assert following.epoch == 1


def test_refusals_are_typed(channel: Channel) -> None:
    worker = Worker(channel, "w0")
    with pytest.raises(UnknownDataset):
        worker.queues.claim("other", 0)
    with pytest.raises(Refused, match="step 7"):
        worker.queues.restore("d", 7)
    lease = worker.queues.claim("d", 0).lease
    assert lease is not None
    with pytest.raises(InvalidArgument, match="outside"):
        worker.queues.commit("d", 0, [LeaseProgress(lease_id=lease.lease_id, row=lease.num_rows + 1)])
    with pytest.raises(InvalidArgument, match="0 or more"):
        worker.queues.claim("d", -1)
    with pytest.raises(Fenced):
        worker.queues.commit("d", 0, [LeaseProgress(lease_id=lease.lease_id + 99, row=1)])
    worker.leave()
    with pytest.raises(Fenced):
        worker.queues.commit("d", 0, [LeaseProgress(lease_id=lease.lease_id, row=1)])
