"""Who may be a rank of a task: the process that was started for it in the current attempt, and nobody else."""

from typing import Any

import pytest

from strata.coordinator.state import commands as c
from strata.errors import Conflict, Fenced
from strata.types.barriers import BarrierArrival
from strata.types.tasks import TaskCourse, TaskStatus, incarnation_of, worker_id_of
from tests.support.pure_cluster import PureCluster, caller

NAMES = [worker_id_of("t", rank) for rank in range(2)]


def _begin(cluster: PureCluster, attempt: int) -> None:
    cluster.ask(
        c.ChangeTask(task_id="t", status=TaskStatus.RUNNING, reason="running", attempt=attempt, course=TaskCourse())
    )


def _join(cluster: PureCluster, attempt: int, rank: int) -> None:
    cluster.join(NAMES[rank], task_id="t", rank=rank, incarnation=incarnation_of("t", attempt, rank))


@pytest.fixture
def cluster() -> PureCluster:
    cluster = PureCluster()
    cluster.submit("t", worker_count=2)
    _begin(cluster, 1)
    for rank in range(2):
        _join(cluster, 1, rank)
    return cluster


def test_a_rank_of_an_earlier_attempt_is_fenced_and_its_successor_is_not(cluster: PureCluster) -> None:
    """Its first registration waited behind a partition, for longer than the task took to begin again."""
    cluster.lose(*NAMES)
    _begin(cluster, 2)
    for rank in range(2):
        _join(cluster, 2, rank)
    with pytest.raises(Fenced, match="at attempt 2"):
        _join(cluster, 1, 0)
    assert [cluster.worker(name).incarnation for name in NAMES] == ["t.2.0", "t.2.1"]
    assert all(cluster.worker(name).alive for name in NAMES)
    _join(cluster, 2, 0)  # a retry of its own registration is harmless


@pytest.mark.parametrize(
    "values",
    [
        {"worker_id": "t-0", "task_id": "t"},
        {"worker_id": "t-0", "task_id": "t", "incarnation": "mine"},
        {"worker_id": "t-0", "task_id": "t", "incarnation": "t.1.1"},
        {"worker_id": "t-0", "task_id": "t", "incarnation": "t.1.0", "rank": 1},
        {"worker_id": "t-00", "task_id": "t", "incarnation": "t.1.0"},
        {"worker_id": "t-2", "task_id": "t", "incarnation": "t.1.2"},
        {"worker_id": "other", "task_id": "t", "incarnation": "t.1.0"},
    ],
)
def test_nobody_else_joins_a_task(cluster: PureCluster, values: dict[str, Any]) -> None:
    with pytest.raises(Fenced):
        cluster.join(**values)
    assert all(cluster.worker(name).alive for name in NAMES)


def test_a_plain_worker_cannot_have_the_name_of_a_rank(cluster: PureCluster) -> None:
    cluster.lose(NAMES[0])  # while it is away, too
    for task_id in ("", "unknown"):
        with pytest.raises(Conflict, match="name of a rank of task t"):
            cluster.join(NAMES[0], task_id=task_id)
    _join(cluster, 1, 0)
    cluster.join("t-x")
    cluster.join("t-9")  # the task has no such rank


def test_a_plain_worker_s_call_is_not_a_rank_s(cluster: PureCluster) -> None:
    """Of the original proto's fields only the id names the caller, and everybody can read ids."""
    name = NAMES[0]
    notice: dict[str, Any] = {
        "checkpoint_id": "x",
        "step": 10**9,
        "epoch": 0,
        "storage_path": "/theirs",
        "size_bytes": 1,
    }
    commands = (
        c.NotifyCheckpoint(caller=caller(name), **notice),
        c.DeregisterWorker(caller=caller(name)),
        c.Arrive(arrival=BarrierArrival(worker_id=name, barrier_id="b")),
        c.BeginCheckpoint(caller=caller(name), step=1, epoch=0, storage_path="/theirs", deadline_s=60),
    )
    for command in commands:
        with pytest.raises(Fenced):
            cluster.ask(command)
    assert cluster.state.checkpoints.latest("t") is None
    cluster.ask(c.NotifyCheckpoint(caller=caller(name, incarnation="t.1.0"), **{**notice, "step": 10}))
    latest = cluster.state.checkpoints.latest("t")
    assert latest is not None
    assert latest.step == 10


def test_a_plain_worker_may_come_back_at_once(cluster: PureCluster) -> None:
    first = cluster.join("plain")
    assert cluster.join("plain").incarnation != first.incarnation
    cluster.arrive("plain")


def test_a_task_that_is_over_takes_nobody(cluster: PureCluster) -> None:
    cluster.ask(c.ChangeTask(task_id="t", status=TaskStatus.COMPLETED, reason="done", attempt=1, course=TaskCourse()))
    with pytest.raises(Fenced, match="completed"):
        _join(cluster, 1, 0)
    with pytest.raises(Fenced, match="attempt 1 of task t is over"):
        cluster.state.tasks.check_attempt("t", 1)
