"""The one rule that makes records of events, its limits, and the public form in which followers get the records."""

import json
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

import pytest

from strata.cluster import events as e
from strata.cluster.checkpoints import KEEP_CHECKPOINTS, KEEP_REMOVED
from strata.cluster.members import Worker
from strata.cluster.model import KEEP_BARRIERS, KEEP_GONE, Cluster
from strata.cluster.snapshot import dump_cluster, load_cluster
from strata.errors import InvalidArgument
from strata.types.checkpoints import CheckpointStatus
from strata.types.plain import from_plain, to_plain
from strata.types.workers import MemberState


def joined(worker_id: str, rank: int = 0, generation: int = 1) -> e.WorkerJoined:
    return e.WorkerJoined(
        worker_id=worker_id, task_id="t", incarnation="i", rank=rank, generation=generation, hostname="h", port=1,
        gpu_count=2, memory_bytes=3, agent_id="", metadata={"zone": "ä"}, at=float(generation),
    )  # fmt: skip


def lost(*worker_ids: str, generation: int, left: bool = False) -> e.MembersLost:
    reasons = tuple("killed" for _ in worker_ids)
    return e.MembersLost(
        task_id="t", generation=generation, worker_ids=worker_ids, reasons=reasons, left=left, at=float(generation)
    )


def saved(step: int, task_id: str = "t", attempt: str = "") -> e.CheckpointCommitted:
    return e.CheckpointCommitted(
        checkpoint_id=f"{task_id}-{step}", task_id=task_id, attempt=attempt, worker_id="w", step=step, epoch=0,
        storage_path=f"/ckpt/{step}", size_bytes=4_000_000, type=0, duration_s=2.0, metadata={"k": "v"}, at=10.0 + step,
    )  # fmt: skip


def removed(*steps: int) -> e.CheckpointRemoved:
    names = tuple(f"t-{step}" for step in steps)
    return e.CheckpointRemoved(task_id="t", checkpoint_ids=names, reason="newer ones exist", at=500.0)


def released(number: int) -> e.BarrierReleased:
    return e.BarrierReleased(
        task_id="t", barrier_id="b", step=number, round=1, generation=1, worker_ids=("w", "v"), request_ids=("", ""),
        absent=(), created_at=5.0, at=5.25,
    )  # fmt: skip


def told(*events: e.Event, cluster: Cluster | None = None) -> Cluster:
    cluster = cluster or Cluster()
    for event in events:
        cluster.evolve(event)
    return cluster


def loaded(dumped: dict[str, Any]) -> Cluster:
    cluster = Cluster()
    load_cluster(cluster, dumped)
    return cluster


def a_life() -> Cluster:
    """Something of everything."""
    begun = e.CheckpointBegun(
        task_id="t", attempt="a", checkpoint_id="t-9", step=9, epoch=0, generation=1, ranks=(0, 1), storage_path="/p",
        deadline_s=9.0, worker_id="w", at=1.0,
    )  # fmt: skip
    return told(
        e.ClusterStarted(cluster_id="c", term=3, started_at=1.5),
        e.AgentJoined(
            agent_id="g", incarnation="i", hostname="h", address="h:1", slots=2, gpu_count=0, memory_bytes=0,
            version="1", at=1.0,
        ),
        e.DatasetRegistered(
            dataset_id="d", path="p", format="csv", total_samples=25, shard_size=10, shuffle=True, seed=7, metadata={},
            file_paths=("a", "b"), file_samples=(20, 5), at=2.0,
        ),
        e.TaskSubmitted(
            task_id="t", request_id="", name="n", type="training", dataset_id="d", worker_count=2,
            config_json='{"lr": NaN, "deep": [[1]]}', entrypoint=("python", "x.py"), env={"KEY": "secret"},
            launcher="local", max_restarts=3, working_dir="", at=3.0,
        ),
        e.TaskChanged(task_id="t", status="running", attempt=1, reason="attempt 1", at=4.0, placement=("g", "g")),
        joined("w"), joined("v", 1, 2), lost("v", generation=3), released(1), begun,
        e.CheckpointVoted(attempt="a", rank=0, manifest_key="k", manifest_hash="h", size_bytes=5, duration_s=1.0),
        saved(4),
        e.QueueOpened(task_id="t", dataset_id="d", epoch=0, fence=3),
        e.QueueLeased(task_id="t", dataset_id="d", worker_id="w", place=0, lease_id=1),
        e.QueueCommitted(task_id="t", dataset_id="d", worker_id="w", lease_ids=(1,), rows=(4,)),
    )  # fmt: skip


def test_all_records_come_back_from_their_public_form() -> None:
    cluster = a_life()
    text = json.dumps(dump_cluster(cluster))
    again = loaded(json.loads(text))
    assert json.dumps(dump_cluster(again)) == text
    assert again.workers == cluster.workers
    assert again.tasks["t"].course == cluster.tasks["t"].course
    assert again.datasets == cluster.datasets
    assert "secret" not in text


def test_the_public_form_and_the_events_after_it_give_the_same_records() -> None:
    cluster = a_life()
    follower = loaded(json.loads(json.dumps(dump_cluster(cluster))))
    more = (
        e.CheckpointAborted(attempt="a", reason="rank 1 died", missing=(1,), at=6.0),
        lost("w", generation=4, left=True),
        joined("w", generation=5),
        e.TaskChanged(task_id="t", status="completed", attempt=1, reason="done", at=9.0),
    )
    for side in (cluster, follower):
        told(*more, cluster=side)
    assert json.dumps(dump_cluster(follower)) == json.dumps(dump_cluster(cluster))
    assert follower.checkpoints.records["t-9"].status is CheckpointStatus.FAILED
    assert follower.tasks["t"].completed_at == 9.0
    assert not follower.queues.records, "a completed task's queue is gone"


def test_a_worker_that_is_gone_is_kept_for_a_while() -> None:
    cluster = Cluster()
    names = [f"w{number}" for number in range(KEEP_GONE + 5)]
    for number, name in enumerate(names):
        told(
            joined(name, 0, 2 * number + 1),
            lost(name, generation=2 * number + 2, left=number % 2 == 0),
            cluster=cluster,
        )
    assert list(cluster.workers) == names[5:]
    assert cluster.workers[names[-1]].state is MemberState.LEFT
    assert cluster.groups["t"].fence == 2 * len(names)


def test_checkpoints_are_kept_within_limits_and_never_the_one_to_go_back_to() -> None:
    cluster = told(saved(1, "other"))
    for step in range(1, 300):
        told(saved(step), removed(step - 1), cluster=cluster)
    statuses = [record.status for record in cluster.checkpoints.records.values()]
    assert statuses.count(CheckpointStatus.REMOVED) == KEEP_REMOVED
    for step in range(300, 300 + KEEP_CHECKPOINTS):
        told(saved(step), cluster=cluster)
    assert len(cluster.checkpoints.records) == KEEP_CHECKPOINTS
    latest = cluster.checkpoints.latest("other")
    assert latest is not None
    assert (latest.step, latest.throughput) == (1, 2.0)


def test_ended_barriers_are_kept_newest_last() -> None:
    cluster = told(*(released(number) for number in range(KEEP_BARRIERS + 3)), released(5))
    steps = [ended.step for ended in cluster.barriers.values()]
    assert (len(steps), steps[0], steps[-1]) == (KEEP_BARRIERS, 3, 5)


def test_an_event_about_what_is_not_there_changes_nothing() -> None:
    cluster = told(
        lost("nobody", generation=1), removed(7),
        e.TaskChanged(task_id="x", status="running", attempt=1, reason="", at=4.0),
        e.AgentLost(agent_id="x", reason="", left=True, at=1.0),
        e.CheckpointAborted(attempt="x", reason="", missing=(), at=1.0),
    )  # fmt: skip
    assert not any((cluster.workers, cluster.tasks, cluster.agents, cluster.checkpoints.records))


def test_fields_of_a_newer_release_are_passed_over() -> None:
    worker = told(joined("w")).workers["w"]
    assert from_plain(Worker, {**to_plain(worker), "from_the_future": 1}) == worker
    body = json.dumps({**json.loads(e.encode_event(joined("w"))), "from_the_future": [1]}).encode()
    assert e.decode_event("WorkerJoined", body) == joined("w")
    with pytest.raises(KeyError, match="rank"):
        from_plain(Worker, {"worker_id": "w"})


def test_one_bad_record_is_left_out_alone() -> None:
    dumped = json.loads(json.dumps(dump_cluster(a_life())))
    dumped["workers"].append({"worker_id": "half"})
    dumped["checkpoints"].append({**dumped["checkpoints"][0], "id": "bad", "step": -1})
    dumped["queues"].append({"task_id": "t", "dataset_id": "unknown", "queue": {}})
    left_out: list[str] = []

    def guard(place: str) -> AbstractContextManager[None]:
        left_out.append(place)
        return suppress(KeyError, InvalidArgument)

    cluster = Cluster()
    load_cluster(cluster, dumped, guard)
    assert {"w", "v"} == set(cluster.workers)
    assert "bad" not in cluster.checkpoints.records
    assert "workers[2]" in left_out
    with pytest.raises(KeyError):
        loaded(dumped)


def test_records_are_frozen() -> None:
    worker = told(joined("w")).workers["w"]
    with pytest.raises(AttributeError):
        worker.rank = 1  # type: ignore[misc]
    assert replace(worker, rank=1).label == "w (rank 1)"
