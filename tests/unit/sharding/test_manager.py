"""ShardManager: the spec's calls, replay and restore, and typed refusals."""

import json
from itertools import pairwise, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.errors import Conflict, InvalidArgument, UnknownDataset, UnknownWorker
from strata.sharding import ShardManager
from strata.types.datasets import DataFile, DatasetSpec


def manager_of(*workers: str) -> ShardManager:
    manager = ShardManager()
    for worker in workers:
        manager.register_worker(worker)
    return manager


def test_the_calls_of_the_contract() -> None:
    manager = manager_of("worker-01", "worker-02")
    assert manager.register_dataset_params("imagenet-1k", 1281167, 10000, True, 42) == 129
    shards = [manager.get_shard_for_worker("imagenet-1k", worker, 0) for worker in ("worker-01", "worker-02")]
    assert sorted(len(part) for part in shards) == [64, 65]
    ranges = sorted((shard.start_index, shard.end_index) for part in shards for shard in part)
    assert ranges[0] == (0, 10000)
    assert ranges[-1] == (1280000, 1281167)
    assert all(left[1] == right[0] for left, right in pairwise(ranges))
    assert {shard.total_shards for part in shards for shard in part} == {129}


def test_the_specification_s_snippet_as_it_is_written() -> None:
    manager = ShardManager()
    manager.register_dataset_params("imagenet-1k", 1281167, 10000, True, 42)
    assignments = manager.get_shard_for_worker("imagenet-1k", "worker-01", 0)
    assert sorted(shard.shard_id for shard in assignments) == list(range(129))


def test_a_manager_that_was_told_of_nobody_shares_among_those_who_ask() -> None:
    manager = ShardManager()
    manager.register_dataset_params("d", 1000, 10)
    assert len(manager.get_shard_for_worker("d", "a")) == 100
    second = {shard.shard_id for shard in manager.get_shard_for_worker("d", "b")}
    first = {shard.shard_id for shard in manager.get_shard_for_worker("d", "a")}
    assert (len(first), len(second), first | second) == (50, 50, set(range(100)))
    again = ShardManager.load(json.loads(json.dumps(manager.dump())))
    assert {shard.shard_id for shard in again.get_shard_for_worker("d", "a")} == first
    manager.register_worker("c")
    with pytest.raises(UnknownWorker, match="'d'"):
        manager.get_shard_for_worker("d", "d")


def test_join_order_does_not_matter_before_the_first_lookup() -> None:
    digests = set()
    for order in permutations(["a", "b", "c", "d"]):
        manager = ShardManager()
        manager.register_dataset_params("d", 1000, 7)
        for worker in order:
            manager.register_worker(worker)
        digests.add(manager.digest("d"))
    assert len(digests) == 1


def test_epochs_change_the_order_and_never_the_owner() -> None:
    manager = manager_of("a", "b")
    manager.register_dataset_params("d", 1000, 10, True, 1)
    first, second = (manager.shard_ids("d", "a", epoch).tolist() for epoch in (0, 1))
    assert first != second
    assert sorted(first) == sorted(second)
    manager.register_dataset_params("plain", 1000, 10, False, 1)
    assert manager.shard_ids("plain", "a", 3).tolist() == sorted(manager.shard_ids("plain", "a", 3).tolist())


def test_a_leave_moves_only_the_shards_of_the_gone() -> None:
    manager = manager_of("a", "b", "c", "d")
    manager.register_dataset_params("set", 10_000, 10)
    owned = {worker: set(manager.shard_ids("set", worker).tolist()) for worker in manager.workers}
    manager.remove_worker("d")
    for worker in ("a", "b", "c"):
        assert owned[worker] <= set(manager.shard_ids("set", worker).tolist())


@given(events=st.lists(st.tuples(st.sampled_from(["join", "leave", "read"]), st.integers(0, 5)), max_size=25))
def test_restored_from_any_point_it_goes_on_the_same(events: list[tuple[str, int]]) -> None:
    original = ShardManager()
    original.register_dataset_params("d", 300, 7)
    restored = original
    for kind, number in events:
        for manager in {id(original): original, id(restored): restored}.values():
            if kind == "join":
                manager.register_worker(f"w{number}")
            elif kind == "leave":
                manager.remove_worker(f"w{number}")
            else:
                manager.rebalance("d")
        restored = ShardManager.load(json.loads(json.dumps(restored.dump())))
    assert restored.dump() == original.dump()
    assert restored.digest("d") == original.digest("d")


def test_dump_is_compact() -> None:
    manager = manager_of(*(f"w{number}" for number in range(100)))
    manager.register_dataset_params("d", 10**8, 1000)
    manager.rebalance("d")
    assert len(json.dumps(manager.dump())) < 4000
    manager.remove_worker("w7")
    manager.rebalance("d")
    assert len(json.dumps(manager.dump())) < 250_000


def test_files_of_a_shard_are_those_its_range_touches() -> None:
    files = tuple(DataFile(path=f"part-{number}", num_samples=size) for number, size in enumerate([5, 0, 10, 5]))
    manager = manager_of("a")
    manager.register_dataset(DatasetSpec(dataset_id="d", total_samples=20, shard_size=5, shuffle=False, files=files))
    found = [shard.file_paths for shard in manager.get_shard_for_worker("d", "a")]
    assert found == [("part-0",), ("part-2",), ("part-2",), ("part-3",)]
    manager.register_dataset(DatasetSpec(dataset_id="e", path="x/*.csv", total_samples=20, shard_size=20))
    assert manager.shard("e", 0).file_paths == ("x/*.csv",)


def test_ring_policy_is_stateless() -> None:
    manager = ShardManager("ring")
    manager.register_dataset_params("d", 5000, 1)
    for worker in ("a", "b", "c"):
        manager.register_worker(worker)
        manager.rebalance("d")
    fresh = ShardManager("ring")
    fresh.register_dataset_params("d", 5000, 1)
    for worker in ("c", "a", "b"):
        fresh.register_worker(worker)
    assert fresh.digest("d") == manager.digest("d")


def test_without_workers_nobody_owns_anything() -> None:
    manager = ShardManager()
    manager.register_dataset_params("d", 10, 1)
    assert manager.assignment("d").tolist() == [-1] * 10
    manager.register_worker("a")
    assert manager.num_assigned("d", "a") == 10


def test_refusals_are_typed() -> None:
    manager = manager_of("a")
    with pytest.raises(UnknownDataset, match="'nope'"):
        manager.get_shard_for_worker("nope", "a", 0)
    manager.register_dataset_params("d", 10, 1)
    with pytest.raises(UnknownWorker, match="'b'"):
        manager.get_shard_for_worker("d", "b", 0)
    with pytest.raises(Conflict, match="other parameters"):
        manager.register_dataset_params("d", 11, 1)
    assert manager.register_dataset_params("d", 10, 1) == 10
    with pytest.raises(InvalidArgument, match="-1"):
        manager.get_shard_for_worker("d", "a", -1)
    with pytest.raises(InvalidArgument, match="'random'"):
        ShardManager("random")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidArgument, match="version 9"):
        ShardManager.load({"version": 9})
