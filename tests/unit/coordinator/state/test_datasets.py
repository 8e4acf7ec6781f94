"""Shards: every one has one owner, a loss spreads them, a replacement moves nothing, replay gives the same tables."""

import pytest

from strata.cluster.events import DatasetAttached, DatasetRegistered, ShardsRebalanced
from strata.coordinator.state import commands as c
from strata.errors import Conflict, InvalidArgument, UnknownDataset, UnknownWorker
from strata.types.datasets import DatasetSpec
from tests.support.pure_cluster import PureCluster, caller


@pytest.fixture
def cluster() -> PureCluster:
    cluster = PureCluster()
    cluster.join_all("a", "b", "c")
    assert cluster.dataset("d", 1000, 10) == 100
    return cluster


def owners(cluster: PureCluster, *workers: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for worker in workers:
        for shard in cluster.shards(worker):
            assert shard not in found, f"shard {shard} has two owners"
            found[shard] = worker
    return found


def test_every_shard_has_one_owner_and_nobody_has_too_many(cluster: PureCluster) -> None:
    dealt = owners(cluster, "a", "b", "c")
    assert set(dealt) == set(range(100))
    assert sorted(list(dealt.values()).count(name) for name in "abc") == [33, 33, 34]


def test_a_death_spreads_its_shards_over_the_rest_and_moves_no_other(cluster: PureCluster) -> None:
    before = owners(cluster, "a", "b", "c")
    cluster.lose("b")
    after = owners(cluster, "a", "c")
    assert set(after) == set(range(100))
    moved = {shard for shard in before if before[shard] != after[shard]}
    assert moved == {shard for shard, owner in before.items() if owner == "b"}
    assert sorted(list(after.values()).count(name) for name in "ac") == [50, 50]


def test_the_tick_deals_without_being_asked(cluster: PureCluster) -> None:
    cluster.pass_time(0.2)
    assert cluster.happened(ShardsRebalanced)[-1].ranks == (0, 1, 2)
    num_events = len(cluster.events)
    cluster.pass_time(0.2)
    assert len(cluster.events) == num_events
    cluster.lose("c")
    cluster.pass_time(0.2)
    assert cluster.happened(ShardsRebalanced)[-1].ranks == (0, 1)


def test_who_comes_back_gets_its_own_shards_back(cluster: PureCluster) -> None:
    before = owners(cluster, "a", "b", "c")
    cluster.join("b")
    assert owners(cluster, "a", "b", "c") == before


def test_a_task_s_shards_stay_with_their_ranks_while_one_is_dead(cluster: PureCluster) -> None:
    cluster.submit("t", worker_count=2, dataset_id="d")
    cluster.join_all("x", "y", task_id="t")
    before = cluster.shards("x"), cluster.shards("y")
    cluster.lose("y")
    assert cluster.shards("x") == before[0]
    cluster.join("z", task_id="t")
    assert cluster.shards("z") == before[1]


def test_the_epoch_changes_the_order_and_not_the_owner(cluster: PureCluster) -> None:
    first, second = cluster.shards("a", epoch=0), cluster.shards("a", epoch=1)
    assert sorted(first) == sorted(second)
    assert first != second
    assert cluster.shards("a", epoch=2**62)


def test_the_first_shard_is_the_first_of_the_list(cluster: PureCluster) -> None:
    reply = cluster.ask(c.GetShards(caller=caller("a"), dataset_id="d", epoch=3, first=True))
    assert [shard.shard_id for shard in reply.assignments] == cluster.shards("a", epoch=3)[:1]


def test_more_workers_than_shards_leave_some_with_none(cluster: PureCluster) -> None:
    cluster.dataset("tiny", 5, 10)
    assert sorted(len(cluster.shards(name, "tiny")) for name in "abc") == [0, 0, 1]


def test_the_same_registration_again_changes_nothing(cluster: PureCluster) -> None:
    assert cluster.dataset("d", 1000, 10) == 100
    assert len(cluster.happened(DatasetRegistered)) == 1
    assert len(cluster.happened(DatasetAttached)) == 1


def test_a_changed_dataset_is_refused_and_the_change_is_named(cluster: PureCluster) -> None:
    with cluster.refuses(Conflict, "registered with .*'shard_size': 10.*this call says .*'shard_size': 20"):
        cluster.dataset("d", 1000, 20)


def test_unknown_names_are_refused(cluster: PureCluster) -> None:
    with cluster.refuses(UnknownDataset, "no dataset 'nope'"):
        cluster.shards("a", "nope")
    with cluster.refuses(UnknownWorker, "'nobody'"):
        cluster.shards("nobody")
    with cluster.refuses(UnknownDataset, "nope"):
        cluster.submit("t", dataset_id="nope")


def test_a_negative_epoch_is_refused(cluster: PureCluster) -> None:
    with cluster.refuses(InvalidArgument, "epoch is -1"):
        cluster.shards("a", epoch=-1)


@pytest.mark.parametrize(
    "values",
    [{"total_samples": 0}, {"total_samples": -5}, {"shard_size": 0}, {"dataset_id": ""}, {"dataset_id": "d" * 10**7}],
)
def test_a_dataset_that_cannot_be_cut_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument):
        DatasetSpec(**{"dataset_id": "d", "total_samples": 1, "shard_size": 1, **values})  # type: ignore[arg-type]  # wrong on purpose
