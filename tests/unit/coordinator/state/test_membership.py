"""Who belongs: ranks without gaps, one process per id, and a fence behind every loss."""

import pytest

from strata.cluster.events import MembersLost, WorkerJoined
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import StateConfig
from strata.errors import Conflict, Fenced, InvalidArgument, UnknownWorker
from strata.types.workers import MemberState
from tests.support.pure_cluster import PureCluster, caller


@pytest.fixture
def cluster() -> PureCluster:
    return PureCluster()


def test_ranks_are_dealt_from_zero_and_the_world_grows(cluster: PureCluster) -> None:
    replies = [cluster.join(name) for name in ("a", "b", "c")]
    assert [reply.rank for reply in replies] == [0, 1, 2]
    assert [reply.world_size for reply in replies] == [1, 2, 3]
    assert [reply.generation for reply in replies] == [1, 2, 3]


def test_a_replacement_takes_the_lowest_free_rank(cluster: PureCluster) -> None:
    cluster.join_all("a", "b", "c")
    cluster.lose("a", "b")
    assert cluster.world_size() == 1
    assert cluster.join("d").rank == 0
    assert cluster.join("e").rank == 1
    assert cluster.join("f").rank == 3


def test_a_crashed_worker_gets_its_own_rank_back_while_nobody_took_it(cluster: PureCluster) -> None:
    cluster.join_all("a", "b", "c")
    cluster.lose("a", "b")
    assert cluster.join("b").rank == 1
    assert cluster.join("new").rank == 0
    assert cluster.join("a").rank == 3


def test_who_left_gives_its_rank_away(cluster: PureCluster) -> None:
    cluster.join_all("a", "b")
    cluster.leave("a")
    assert cluster.worker("a").state is MemberState.LEFT
    assert cluster.world_size() == 1
    assert cluster.join("c").rank == 0


def test_a_second_process_takes_the_id_over_and_fences_the_first(cluster: PureCluster) -> None:
    cluster.join("a", incarnation="one")
    cluster.join("b")
    before = cluster.generation()
    reply = cluster.join("a", incarnation="two")
    assert (reply.rank, reply.world_size, reply.incarnation) == (0, 2, "two")
    assert reply.generation > before
    assert cluster.happened(MembersLost)[-1].worker_ids == ("a",)
    with cluster.refuses(Fenced, "incarnation one of worker a was replaced by two"):
        cluster.ask(c.DeregisterWorker(caller=caller("a", "one")))


def test_the_same_process_registers_again_without_effect(cluster: PureCluster) -> None:
    first = cluster.join("a", incarnation="one")
    assert cluster.join("a", incarnation="one") == first
    assert len(cluster.happened(WorkerJoined)) == 1


def test_a_plain_client_that_registers_again_is_a_new_process(cluster: PureCluster) -> None:
    first = cluster.join("a")
    again = cluster.join("a")
    assert again.rank == first.rank
    assert again.incarnation != first.incarnation


def test_silence_is_death_after_the_lease_and_says_so(cluster: PureCluster) -> None:
    cluster.join_all("a", "b")
    cluster.pass_time(20)
    assert cluster.standing("a") is MemberState.SUSPECT
    cluster.beat("a")
    assert cluster.worker("a").state is MemberState.READY
    cluster.pass_time(10.5)
    assert cluster.worker("b").state is MemberState.LOST
    assert cluster.worker("b").reason == "no heartbeat for 30.5 s (timeout 30 s)"
    assert cluster.ranks() == {"a": 0}


def test_the_lease_itself_is_enough(cluster: PureCluster) -> None:
    cluster.join("a")
    cluster.pass_time(30.0)
    assert cluster.worker("a").alive


def test_wall_time_that_jumps_kills_nobody(cluster: PureCluster) -> None:
    cluster.join("a")
    cluster.clock.jump(86_400)
    cluster.pass_time(1)
    cluster.clock.jump(-2 * 86_400)
    cluster.pass_time(1)
    assert cluster.worker("a").alive


def test_after_a_restart_everybody_has_a_fresh_term(cluster: PureCluster) -> None:
    cluster.join_all("a", "b")
    cluster.clock.advance(1_000)
    cluster.restart()
    cluster.pass_time(29)
    assert cluster.world_size() == 2
    cluster.pass_time(2)
    assert cluster.world_size() == 0


def test_the_dead_are_fenced_on_every_mutating_call(cluster: PureCluster) -> None:
    cluster.join_all("a", "b")
    cluster.dataset()
    attempt = cluster.begin("b").attempt
    cluster.lose("a")
    cluster.clock.advance(4)
    for act in (
        lambda: cluster.arrive("a"),
        lambda: cluster.shards("a"),
        lambda: cluster.begin("a"),
        lambda: cluster.vote("a", attempt),
        lambda: cluster.commit("a", attempt),
        lambda: cluster.leave("a"),
        lambda: cluster.ask(c.Recover(caller=caller("a"))),
        lambda: cluster.ask(c.AbortCheckpoint(caller=caller("a"), attempt=attempt, reason="x")),
        lambda: cluster.ask(
            c.NotifyCheckpoint(caller=caller("a"), checkpoint_id="k", step=1, epoch=0, storage_path="", size_bytes=1)
        ),
    ):
        with cluster.refuses(Fenced, "worker a was declared lost 4.0 s ago: killed by signal 9"):
            act()


def test_an_older_generation_is_fenced_by_a_loss_but_not_by_a_join(cluster: PureCluster) -> None:
    seen = cluster.join("a").generation
    cluster.join("b")
    cluster.arrive("a", generation=seen, expected=3)
    cluster.lose("b")
    with cluster.refuses(Fenced, f"generation {seen}, current {cluster.generation()}"):
        cluster.arrive("a", "c", generation=seen)
    cluster.arrive("a", "c", generation=cluster.generation())


def test_groups_count_apart(cluster: PureCluster) -> None:
    cluster.join_all("a", "b", task_id="t1")
    cluster.join("c", task_id="t2")
    assert cluster.ranks("t1") == {"a": 0, "b": 1}
    assert cluster.ranks("t2") == {"c": 0}
    generation = cluster.generation("t2")
    cluster.lose("a")
    assert cluster.generation("t2") == generation


def test_a_declared_task_has_its_size_whoever_is_alive(cluster: PureCluster) -> None:
    cluster.submit("t", worker_count=2)
    assert cluster.join("a", task_id="t").world_size == 2
    assert cluster.join("b", task_id="t", rank=1).rank == 1
    with cluster.refuses(Conflict, "task t has 2 workers already"):
        cluster.join("c", task_id="t")
    cluster.leave("a")
    assert cluster.world_size("t") == 2
    assert cluster.join("c", task_id="t").rank == 0


def test_an_id_that_comes_back_in_another_group_is_counted_once(cluster: PureCluster) -> None:
    cluster.join_all("a", "b", task_id="t1")
    cluster.lose("a")
    cluster.join("a", task_id="t2")
    assert cluster.ranks("t1") == {"b": 1}
    assert cluster.world_size("t1") == 1
    assert cluster.join("c", task_id="t1").rank == 0
    assert cluster.arrive("b", generation=0) is None
    assert cluster.arrive("c") is not None


def test_bad_registrations_are_refused(cluster: PureCluster) -> None:
    cluster.submit("t", worker_count=2)
    cluster.join("a", task_id="t", rank=0)
    cluster.join("b", task_id="t", rank=1)
    with cluster.refuses(Conflict, "rank 0 of task t is held by worker a, which is alive"):
        cluster.join("x", task_id="t", rank=0)
    with cluster.refuses(Conflict, "rank 0 of task t is held"):
        cluster.join("b", task_id="t", rank=0, incarnation="new")
    with cluster.refuses(InvalidArgument, "rank is 7, task t has ranks 0 to 1"):
        cluster.join("x", task_id="t", rank=7)
    with cluster.refuses(Conflict, "alive in task t, it cannot join the group of plain workers"):
        cluster.join("a")
    with cluster.refuses(UnknownWorker, "'nobody' is not registered"):
        cluster.leave("nobody")
    with cluster.refuses(UnknownWorker, "'nobody'"):
        cluster.ask(c.Recover(caller=caller("nobody")))


@pytest.mark.parametrize(
    "values",
    [
        {"worker_id": ""},
        {"worker_id": "a" * 10_000_000},
        {"worker_id": "../a"},
        {"worker_id": "a", "rank": -1},
        {"worker_id": "a", "port": -1},
        {"worker_id": "a", "port": 70_000},
        {"worker_id": "a", "gpu_count": -1},
        {"worker_id": "a", "memory_bytes": -1},
        {"worker_id": "a", "hostname": "h" * 256},
        {"worker_id": "a", "task_id": "a b"},
        {"worker_id": "a", "metadata": {"k": "v" * 70_000}},
    ],
)
def test_a_worker_that_describes_itself_badly_is_refused_with_a_short_sentence(values: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument) as caught:
        PureCluster().join(**values)  # type: ignore[arg-type]  # wrong on purpose
    assert 10 < len(str(caught.value)) < 300


def test_deaths_that_were_seen_twice_count_once(cluster: PureCluster) -> None:
    cluster.join_all("a", "b")
    cluster.lose("a", "ghost")
    generation = cluster.generation()
    cluster.lose("a")
    assert cluster.generation() == generation
    assert cluster.happened(MembersLost)[0].worker_ids == ("a",)


def test_records_of_the_gone_are_bounded_and_their_ranks_reusable() -> None:
    cluster = PureCluster(StateConfig(worker_lease_s=1.0))
    for number in range(1_100):
        cluster.clock.advance(0.001)
        cluster.join(f"w{number}")
        cluster.lose(f"w{number}")
    assert len(cluster.state.membership.workers) == 1_000
    assert cluster.join("last").rank == 0
    assert cluster.world_size() == 1
