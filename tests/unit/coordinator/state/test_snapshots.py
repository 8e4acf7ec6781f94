"""A snapshot and a replay of the events give the very state that was left, whatever happened in it."""

import json
import math
from collections.abc import Callable

import pytest

from strata.coordinator.engine.snapshots import Snapshots
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.errors import InvalidArgument
from strata.types.barriers import BarrierPolicy
from strata.types.tasks import TaskStatus
from strata.types.workers import AgentSpec, MemberState
from tests.support.pure_cluster import PureCluster, caller


@pytest.fixture
def cluster() -> PureCluster:
    """A life with something of everything in it."""
    cluster = PureCluster()
    cluster.ask(c.Start(cluster_id="one"))
    cluster.ask(c.AttachAgent(spec=AgentSpec(agent_id="h", incarnation="i", hostname="h", address="h:1", slots=4)))
    cluster.ask(c.AttachAgent(spec=AgentSpec(agent_id="g", incarnation="i", hostname="g", address="g:1", slots=4)))
    cluster.ask(c.LoseAgent(agent_id="g", reason="left", left=True))
    cluster.dataset("d", 997, 10)
    cluster.dataset("e", 50, 7)
    cluster.join_all("a", "b", "c", metadata={"zone": "ä"})
    cluster.submit("t", worker_count=2, request_id="r", dataset_id="d")
    cluster.join_all("x", "y", task_id="t", incarnation="one")
    cluster.pass_time(0.2)
    cluster.lose("b")
    cluster.shards("a", "e")
    for name in "ac":
        cluster.arrive(name, request_id=f"{name}-1", policy=BarrierPolicy.SHRINK)
    cluster.arrive("x", timeout_s=1)
    cluster.pass_time(2)
    committed = cluster.begin("x").attempt
    for name in "xy":
        cluster.vote(name, committed)
    cluster.commit("x", committed)
    cluster.begin("x", step=20)
    cluster.lose("y")
    cluster.join("z", task_id="t")
    cluster.vote("x", cluster.begin("x", step=30).attempt)
    cluster.ask(
        c.NotifyCheckpoint(caller=caller("a"), checkpoint_id="k", step=1, epoch=0, storage_path="", size_bytes=1)
    )
    cluster.leave("c")
    cluster.join("b")
    cluster.pass_time(1)
    cluster.ask(c.StopTask(task_id="t"))
    return cluster


def test_a_snapshot_comes_back_equal(cluster: PureCluster) -> None:
    assert cluster.reloaded().dump() == cluster.state.dump()


def test_the_events_replayed_give_the_same_state(cluster: PureCluster) -> None:
    assert cluster.replayed().dump() == cluster.state.dump()


def test_a_snapshot_and_the_events_after_it_give_the_same_state(cluster: PureCluster) -> None:
    state, before = cluster.reloaded(), len(cluster.events)
    cluster.join_all("new", "b")
    cluster.lose("x")
    cluster.pass_time(1)
    for event in cluster.events[before:]:
        state.evolve(event, cluster.now())
    assert state.dump() == cluster.state.dump()


@pytest.mark.parametrize("way", ["reloaded", "replayed"])
def test_both_give_the_same_answers(cluster: PureCluster, way: str) -> None:
    other = PureCluster()
    other.clock, other.state = cluster.clock, getattr(cluster, way)()
    other.state.renew_leases(other.now())
    questions: tuple[Callable[[PureCluster], object], ...] = (
        lambda box: box.shards("a", "d", 3),
        lambda box: box.shards("z", "d", 3),
        lambda box: box.shards("b", "e"),
        lambda box: box.arrive("a", request_id="a-1", policy=BarrierPolicy.SHRINK),
        lambda box: box.join("fresh"),
        lambda box: box.join("c"),
        lambda box: box.begin("x", step=30).attempt,
        lambda box: box.begin("x", step=40).attempt,
        lambda box: box.submit("other", request_id="r").task_id,
        lambda box: box.ask(c.Recover(caller=caller("x"))),
    )
    for ask in questions:
        assert ask(other) == ask(cluster)
    assert other.image() == cluster.image()


def test_a_suspect_is_given_the_benefit_of_the_doubt(cluster: PureCluster) -> None:
    cluster.pass_time(20)
    assert cluster.standing("a") is MemberState.SUSPECT
    assert cluster.state.dump() == cluster.replayed().dump(), "suspicion is not journaled"
    cluster.restart()
    assert cluster.standing("a") is MemberState.READY


def test_terms_grow_and_the_cluster_keeps_its_id(cluster: PureCluster) -> None:
    assert (cluster.state.cluster_id, cluster.state.term) == ("one", 1)
    cluster.restart()
    cluster.ask(c.Start(cluster_id="two"))
    assert (cluster.state.cluster_id, cluster.state.term) == ("one", 2)


def test_a_snapshot_of_another_version_is_refused(cluster: PureCluster) -> None:
    with pytest.raises(InvalidArgument, match="version 99"):
        ClusterState(StateConfig()).load({**cluster.state.dump(), "version": 99}, cluster.now())


def test_a_snapshot_is_json(cluster: PureCluster) -> None:
    assert json.loads(json.dumps(cluster.state.dump(), allow_nan=False))


def test_a_submission_repeated_is_the_same_task(cluster: PureCluster) -> None:
    before = len(cluster.events)
    assert cluster.submit("another-id", request_id="r").task_id == "t"
    cluster.restart()
    assert cluster.submit("another-id", request_id="r").task_id == "t"
    assert len(cluster.events) == before
    assert cluster.submit("second").task_id == "second"
    assert cluster.submit("third").task_id == "third"


def test_a_task_stopped_twice_is_stopped_once(cluster: PureCluster) -> None:
    before = len(cluster.events)
    assert cluster.ask(c.StopTask(task_id="t")).status in (TaskStatus.STOPPED, TaskStatus.STOPPING)
    assert len(cluster.events) == before


def test_a_snapshot_is_written_in_pieces_while_the_state_goes_on() -> None:
    cluster = PureCluster()
    cluster.submit("t", worker_count=2)
    cluster.join_all(*(f"w{number}" for number in range(200)))
    attempt = cluster.begin("w0").attempt
    before, draft = cluster.state.dump(), Snapshots(cluster.state).begin(7)
    assert draft.go_on(0.0) is None, "one piece at least, and not all"
    cluster.vote("w0", attempt)
    cluster.lose("w1")
    snapshot = draft.go_on(math.inf)
    assert snapshot is not None
    assert (snapshot.seq, json.loads(snapshot.body)) == (7, before)
