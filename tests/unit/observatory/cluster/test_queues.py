"""The read model's queues beside the coordinator's own: the same numbers after any history, from events or a dump."""

import json
import random
from contextlib import nullcontext
from typing import Any

import pytest

from strata.cluster.events import TaskChanged
from strata.cluster.snapshot import dump_cluster
from strata.observatory.answers.datasets import DatasetQueue
from strata.observatory.cluster import views
from strata.observatory.cluster.followed import FollowedCluster
from strata.types.queues import QueueStatus
from tests.unit.coordinator.state.test_queue_schedules import SAMPLES, SHARD, Job


def followed(job: Job, since: int = 0, cluster: FollowedCluster | None = None) -> FollowedCluster:
    cluster = cluster or FollowedCluster()
    for event in job.cluster.events[since:]:
        cluster.apply(event)
    return cluster


def shown(cluster: FollowedCluster) -> DatasetQueue | None:
    queues = views.datasets(cluster)[0].queues
    return queues[0] if queues else None


def expected(job: Job) -> dict[str, Any]:
    queue = job.cluster.state.queues.queues[job.task_id, "d"]
    held = {name: len(queue.held_by(name)) for name in job.names if queue.held_by(name)}
    leases = [lease for name in held for lease in queue.held_by(name)]
    sizes = queue.order.sizes[queue.shards]
    lent = sum(int(sizes[lease.place]) - queue.committed_row(lease) for lease in leases)
    return {
        "epoch": queue.epoch,
        "committed_samples": queue.num_committed,
        "leased_samples": lent,
        "remaining_samples": SAMPLES - queue.num_committed - lent,
        "workers": held,
        "leased_shards": sum(held.values()),
        "finished": queue.finished,
    }


@pytest.mark.parametrize("seed", range(8))
def test_any_history_gives_the_coordinators_numbers(seed: int) -> None:
    chance = random.Random(seed)
    job = Job(world=3)
    for _ in range(150):
        name = chance.choice(job.names)
        turn = chance.random()
        if turn < 0.7:
            if job.read(name, chance.randint(1, SHARD)) is QueueStatus.FINISHED:
                job.epoch += 1
        elif turn < 0.95:
            job.commit(name, answered=chance.random() < 0.8)
        else:
            job.cluster.lose(name)
            job.join(name)
    told = shown(followed(job))
    assert told is not None
    assert {name: getattr(told, name) for name in expected(job)} == expected(job)
    assert (told.num_samples, told.num_shards, told.task_id) == (SAMPLES, -(-SAMPLES // SHARD), None)

    snapshot = FollowedCluster()
    snapshot.load(len(job.cluster.events), json.loads(json.dumps(dump_cluster(job.cluster.state.cluster))), nullcontext)
    assert shown(snapshot) == told, "a page opened later sees the same"
    before = len(job.cluster.events)
    job.read(job.names[0], 1)
    job.commit(job.names[0])
    again = shown(followed(job, before, snapshot))
    assert again is not None
    assert {name: getattr(again, name) for name in expected(job)} == expected(job), "and follows on from there"


def test_progress_of_a_dataset_is_what_counts_in_its_queue() -> None:
    job = Job(world=2)
    cluster = followed(job)
    assert shown(cluster) is None, "nobody reads it in queue mode"
    assert views.datasets(cluster)[0].progress is None
    cluster.dirty.clear()
    before = len(job.cluster.events)
    job.read("w0", 5)
    job.commit("w0")
    followed(job, before, cluster)
    assert "datasets" in cluster.dirty
    dataset = views.datasets(cluster)[0]
    assert dataset.epoch == 0
    assert dataset.progress == pytest.approx(100 * 5 / SAMPLES)


@pytest.mark.parametrize(("status", "stays"), [("stopped", True), ("failed", True), ("completed", False)])
def test_the_queue_of_a_task_waits_for_its_resumption_and_ends_with_its_completion(status: str, stays: bool) -> None:
    """At the coordinator and on the page alike: a resumed task goes on where its queue stands."""
    job = Job(world=1, task_id="t1")
    job.read("w0", 3)
    cluster = followed(job)
    told = shown(cluster)
    assert told is not None
    assert (told.task_id, told.workers) == ("t1", {"w0": 1})
    ended = TaskChanged(task_id="t1", status=status, attempt=1, reason="", at=9.0)
    cluster.apply(ended)
    job.cluster.state.cluster.evolve(ended)
    assert (shown(cluster) is not None) is stays
    assert (("t1", "d") in job.cluster.state.queues.queues) is stays
