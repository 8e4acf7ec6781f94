"""Barriers of a declared task: its empty ranks are waited for by number, whoever takes them."""

import pytest

from strata.cluster.events import BarrierBroke, BarrierReleased
from strata.coordinator.state.outcomes import Outcome
from strata.types.barriers import BarrierPolicy
from tests.support.pure_cluster import PureCluster

SHRINK, WAIT = BarrierPolicy.SHRINK, BarrierPolicy.WAIT


def released(outcome: Outcome | None) -> set[str]:
    assert isinstance(outcome, BarrierReleased), outcome
    return set(outcome.worker_ids)


@pytest.fixture
def task() -> PureCluster:
    cluster = PureCluster()
    cluster.submit("t", worker_count=3)
    cluster.join_all("a", "b", task_id="t")
    return cluster


def test_a_task_waits_for_ranks_that_nobody_has_yet(task: PureCluster) -> None:
    task.arrive("a")
    assert task.arrive("b") is None
    task.join("c", task_id="t")
    assert released(task.arrive("c")) == {"a", "b", "c"}


def test_a_deadline_names_the_empty_rank(task: PureCluster) -> None:
    task.arrive("a", timeout_s=5)
    task.pass_time(5)
    assert task.happened(BarrierBroke)[0].missing == ("b", "rank 2 (nobody yet)")


def test_a_task_shrinks_to_survivors_and_never_leaves_one_of_them_behind(task: PureCluster) -> None:
    task.arrive("a", policy=SHRINK)
    task.lose("b")
    task.join("new", task_id="t")
    task.join("c", task_id="t")
    assert task.arrive("new", policy=SHRINK) is None, "c is alive and has not come"
    assert released(task.arrive("c", policy=SHRINK)) == {"a", "new", "c"}


def test_the_death_of_a_newcomer_in_an_empty_rank_counts(task: PureCluster) -> None:
    task.arrive("a")
    task.join("c", task_id="t")
    task.lose("c")
    assert task.happened(BarrierBroke)[0].missing == ("c",)


def test_wait_gives_the_place_of_one_who_left_to_its_replacement() -> None:
    cluster = PureCluster()
    cluster.join_all("a", "b", "c")
    cluster.arrive("a", policy=WAIT)
    cluster.arrive("b", policy=WAIT)
    cluster.leave("c")
    cluster.join("d")
    assert released(cluster.arrive("d", policy=WAIT)) == {"a", "b", "d"}


def test_whom_it_waits_for_is_told_by_rank() -> None:
    cluster = PureCluster()
    cluster.submit("t", worker_count=14)
    for rank in range(12):
        cluster.join(f"t-r{rank}", task_id="t", rank=rank)
    cluster.arrive("t-r0")
    (barrier,) = cluster.state.barriers.open.values()
    known = [f"t-r{rank}" for rank in range(1, 12)]
    assert cluster.state.barriers.missing(barrier) == [*known, "rank 12 (nobody yet)", "rank 13 (nobody yet)"]
