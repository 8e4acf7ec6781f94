"""The records of the followed cluster in the shapes that REST shows."""

import json
from dataclasses import replace

import pytest

from strata.clock import ManualClock
from strata.cluster import events as ev
from strata.cluster.snapshot import dump_cluster
from strata.observatory.answers.status import Status
from strata.observatory.background.setaside import SetAside
from strata.observatory.cluster import views
from strata.observatory.cluster.followed import FollowedCluster, root_of
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.cluster.vitals import WorkerVitals
from strata.observatory.stream.broadcaster import Broadcaster
from strata.protocol.generated.control_pb2 import BarrierVitals
from tests.support.answers import partly


def told(cluster: FollowedCluster, *events: ev.Event) -> FollowedCluster:
    for event in events:
        cluster.apply(event)
    return cluster


def joined(worker_id: str, rank: int, generation: int, task_id: str = "t1") -> ev.WorkerJoined:
    return ev.WorkerJoined(
        worker_id=worker_id, task_id=task_id, incarnation="i", rank=rank, generation=generation, hostname="h1",
        port=1, gpu_count=2, memory_bytes=3, agent_id="", metadata={}, at=100.5,
    )  # fmt: skip


def lost(worker_id: str, *, left: bool = False) -> ev.MembersLost:
    return ev.MembersLost(
        task_id="t1", generation=3, worker_ids=(worker_id,), reasons=("its process was killed",), left=left, at=101.0
    )


def test_workers_join_die_and_leave() -> None:
    cluster = told(FollowedCluster(), joined("w1", 1, 1), joined("w0", 0, 2))
    cluster.set_vitals(
        {"w0": WorkerVitals(state="training", member_state="ready", current_step=7, last_heartbeat=102.25)}, [], {}
    )
    shown = views.workers(cluster)
    assert [(one.id, one.rank, one.status) for one in shown] == [("w0", 0, "active"), ("w1", 1, "idle")]
    assert shown[0].last_heartbeat == 102
    assert shown[0].last_heartbeat_ms == 102_250
    assert shown[1].current_step is None
    told(cluster, lost("w1"))
    dead = views.workers(cluster)[1]
    assert (dead.status, dead.state, dead.reason) == ("failed", "lost", "its process was killed")
    assert views.metrics(cluster).total_workers == 1
    told(cluster, lost("w0", left=True))
    assert [one.id for one in views.workers(cluster)] == ["w1"]


@pytest.mark.parametrize(
    ("told_pid", "pid"), [("4321", 4321), ("", None), ("-1", None), (str(2**70), None), ("x", None)]
)
def test_a_pid_is_shown_where_metadata_has_one(told_pid: str, pid: int | None) -> None:
    event = joined("w0", 0, 1)
    (shown,) = views.workers(told(FollowedCluster(), replace(event, metadata={"pid": told_pid})))
    assert shown.pid == pid


def test_what_nobody_measured_is_null() -> None:
    shown = views.metrics(FollowedCluster())
    assert shown.checkpoint_throughput is None
    assert shown.barrier_latency_p99 is None
    assert shown.active_workers == 0


def test_a_checkpoint_from_begin_to_commit_and_one_that_fails() -> None:
    def begun(attempt: str, name: str) -> ev.CheckpointBegun:
        return ev.CheckpointBegun(
            task_id="t1", attempt=attempt, checkpoint_id=name, step=5, epoch=1, generation=1, ranks=(0, 1),
            storage_path="p", deadline_s=9.0, worker_id="w0", at=10.0,
        )  # fmt: skip

    vote = ev.CheckpointVoted(attempt="a1", rank=0, manifest_key="k", manifest_hash="h", size_bytes=500, duration_s=0.5)
    done = ev.CheckpointCommitted(
        checkpoint_id="c1", task_id="t1", attempt="a1", worker_id="w0", step=5, epoch=1, storage_path="p",
        size_bytes=4_000_000, type=0, duration_s=2.0, metadata={}, at=12.0,
    )  # fmt: skip
    cluster = told(FollowedCluster(), begun("a1", "c1"), vote)
    assert views.checkpoints(cluster)[0].status == "in_progress"
    assert views.checkpoints(cluster)[0].size == 500
    told(cluster, done, begun("a2", "c2"))
    told(cluster, ev.CheckpointAborted(attempt="a2", reason="rank 1 died", missing=(1,), at=13.0))
    by_id = {one.id: one for one in views.checkpoints(cluster)}
    assert by_id["c1"].status == "completed"
    assert by_id["c1"].throughput == 2.0
    assert by_id["c2"].status == "failed"
    assert by_id["c2"].reason == "rank 1 died"


def test_barriers_wait_complete_and_break() -> None:
    cluster = FollowedCluster()
    waiting = BarrierVitals(
        barrier_id="e0", task_id="t1", step=1, arrived=1, total=2, created_at=5.0, round=1, missing=["w1"]
    )
    cluster.set_vitals({}, [waiting], {})
    assert views.barriers(cluster)[0].status == "waiting"
    released = ev.BarrierReleased(
        task_id="t1", barrier_id="e0", step=1, round=1, generation=1, worker_ids=("w0", "w1"), request_ids=("", ""),
        absent=(), created_at=5.0, at=5.25,
    )  # fmt: skip
    told(cluster, released)
    cluster.set_vitals({}, [], {})
    shown = views.barriers(cluster)
    assert [(one.status, one.arrived, one.wait_ms) for one in shown] == [("complete", 2, 250)]


def test_tasks_follow_their_status() -> None:
    submitted = ev.TaskSubmitted(
        task_id="t1", request_id="", name="n", type="training", dataset_id="", worker_count=2,
        config_json='{"lr": 1}', entrypoint=(), env={}, launcher="local", max_restarts=3, working_dir="", at=1.0,
    )  # fmt: skip
    cluster = told(FollowedCluster(), submitted)
    assert views.tasks(cluster)[0].status == "queued"
    told(cluster, ev.TaskChanged(task_id="t1", status="running", attempt=1, reason="", at=2.0), joined("w0", 0, 1))
    told(cluster, ev.TaskChanged(task_id="t1", status="completed", attempt=1, reason="all ranks ended", at=9.0))
    shown = views.tasks(cluster)[0]
    assert (shown.started_at, shown.completed_at, shown.progress) == (2, 9, 100.0)
    assert shown.worker_ids == ["w0"]
    assert shown.config == {"lr": 1}


def test_workers_of_a_later_attempt_recover_until_they_train() -> None:
    submitted = ev.TaskSubmitted(
        task_id="t1", request_id="", name="n", type="training", dataset_id="", worker_count=1,
        config_json="{}", entrypoint=(), env={}, launcher="local", max_restarts=3, working_dir="", at=1.0,
    )  # fmt: skip
    cluster = told(
        FollowedCluster(), submitted, ev.TaskChanged(task_id="t1", status="running", attempt=2, reason="", at=2.0),
        joined("w0", 0, 1),
    )  # fmt: skip
    assert views.workers(cluster)[0].status == "recovering"
    cluster.set_vitals({"w0": WorkerVitals(state="training", member_state="ready")}, [], {})
    assert views.workers(cluster)[0].status == "active"


def a_board() -> tuple[PublishedCluster, SetAside]:
    clock = ManualClock()
    aside = SetAside(clock, lambda _: None)
    return PublishedCluster(Broadcaster(lambda _: b"{}", clock), clock, lambda: partly(Status), aside), aside


def test_unknown_kinds_are_passed_over() -> None:
    published, aside = a_board()
    published.apply(9, "SomethingNewer", b'{"a": 1}')
    assert published.followed.seq == 9
    assert not aside.view()


def test_an_event_or_a_record_that_cannot_be_read_is_set_aside_alone() -> None:
    published, aside = a_board()
    dumped = dump_cluster(told(FollowedCluster(), joined("w0", 0, 1), joined("w1", 1, 2)).records)
    dumped["workers"][0] = {"worker_id": "w0"}
    published.load(5, dumped)
    published.apply(6, "WorkerJoined", b'{"worker_id": "half"}')
    published.apply(7, "WorkerJoined", ev.encode_event(joined("w2", 2, 3)))
    assert [one.id for one in views.workers(published.followed)] == ["w1", "w2"]
    assert {part.part: part.count for part in aside.view()} == {"cluster records": 1, "cluster events": 1}


async def test_the_board_publishes_changed_collections_and_keeps_the_last_state() -> None:
    clock = ManualClock()
    stream = Broadcaster(lambda _: b"{}", clock)
    published = PublishedCluster(stream, clock, lambda: partly(Status), SetAside(clock, lambda _: None))
    published.publish()
    before = stream.last_seq
    published.publish()
    assert stream.last_seq == before
    event = joined("w0", 0, 1)
    published.apply(1, "WorkerJoined", ev.encode_event(event))
    published.publish()
    assert stream.last_seq == before + 1
    published.set_vitals({}, [], {})
    assert published.status().connected
    published.set_disconnected("connection refused")
    assert not published.status().connected
    assert published.status().problem == "connection refused"
    assert b'"w0"' in published.body("workers")


async def test_the_coordinators_record_is_never_an_old_one() -> None:
    clock = ManualClock()
    problem: str | None = "starting"
    stream = Broadcaster(lambda _: b"{}", clock)
    published = PublishedCluster(
        stream, clock, lambda: partly(Status, metric_store_problem=problem), SetAside(clock, lambda _: None)
    )
    published.followed.apply(ev.ClusterStarted(cluster_id="c", term=1, started_at=clock.wall()))
    published.set_vitals({}, [], {})
    published.publish()
    clock.advance(60.0)
    assert json.loads(published.body("coordinator"))["uptime"] == 60
    before = stream.last_seq
    problem = None
    published.publish()
    assert stream.last_seq == before + 1


def test_pins_are_read_from_stores_and_outlive_a_snapshot() -> None:
    def done(name: str, step: int, path: str) -> ev.CheckpointCommitted:
        return ev.CheckpointCommitted(
            checkpoint_id=name, task_id="t1", attempt="", worker_id="w0", step=step, epoch=1, storage_path=path,
            size_bytes=4, type=0, duration_s=None, metadata={}, at=12.0 + step,
        )  # fmt: skip

    cluster = told(
        FollowedCluster(), done("c1", 1, "/ckpt"), done("c2", 2, "/ckpt/step-000000000002"), done("c3", 3, "/far")
    )

    def pinned() -> dict[str, bool | None]:
        return {one.id: one.pinned for one in views.checkpoints(cluster)}

    assert pinned() == {"c1": None, "c2": None, "c3": None}, "nobody has looked yet"
    cluster.dirty.clear()
    cluster.set_store("/ckpt", frozenset({2}))
    assert "checkpoints" in cluster.dirty
    assert pinned() == {"c1": False, "c2": True, "c3": None}
    cluster.dirty.clear()
    cluster.set_store("/ckpt", frozenset({2}))
    assert not cluster.dirty, "the same again is no news"
    cluster.set_store("/ckpt", None)
    assert pinned()["c2"] is None


def test_the_store_of_a_checkpoint() -> None:
    assert root_of("/ckpt/run-1") == "/ckpt/run-1"
    assert root_of("/ckpt/run-1/step-000000000120") == "/ckpt/run-1"
    assert root_of("s3://bucket/p/step-000000000120/") == "s3://bucket/p"
    assert root_of("step-000000000120") == "step-000000000120"
    assert root_of("/ckpt/step-12") == "/ckpt/step-12", "somebody else's name"


def test_a_removed_checkpoint_is_never_called_completed() -> None:
    def done(step: int) -> ev.CheckpointCommitted:
        return ev.CheckpointCommitted(
            checkpoint_id=f"c{step}", task_id="t1", attempt="", worker_id="w0", step=step, epoch=1,
            storage_path=f"/ckpt/step-{step:012d}", size_bytes=4, type=0, duration_s=None, metadata={}, at=12.0 + step,
        )  # fmt: skip

    def gone(*steps: int) -> ev.CheckpointRemoved:
        names = tuple(f"c{step}" for step in steps)
        return ev.CheckpointRemoved(task_id="t1", checkpoint_ids=names, reason="5 newer ones exist", at=500.0)

    cluster = told(FollowedCluster(), done(1), done(2), gone(1, 77))
    cluster.set_store("/ckpt", frozenset({1, 2}))
    shown = {one.id: one for one in views.checkpoints(cluster)}
    assert (shown["c1"].status, shown["c1"].reason, shown["c1"].pinned) == (
        "removed", "5 newer ones exist", False,
    )  # fmt: skip
    assert shown["c2"].status == "completed"
    assert "c77" not in shown, "one that was never known"
    for step in range(3, 300):
        told(cluster, done(step), gone(step - 1))
    statuses = [str(one.status) for one in views.checkpoints(cluster)]
    assert statuses.count("completed") == 1
    assert statuses.count("removed") == 100, "the list does not grow for ever"
