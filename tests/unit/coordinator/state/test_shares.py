"""Who reads which samples: what loaders announce, what a queue lent, what was dealt; and nobody where nobody reads."""

import zlib
from typing import Any

import numpy as np
import pytest

from strata.cluster.events import ReadingAnnounced
from strata.coordinator.state import commands as c
from strata.coordinator.state.shares import ShardReaders
from strata.errors import InvalidArgument, UnknownDataset, UnknownWorker
from strata.sharding.lanes import LaneLayout, OrderSpec
from strata.sharding.sticky import plan_sticky
from strata.types.queues import LeaseProgress
from strata.types.tasks import TaskCourse, TaskStatus
from tests.support.pure_cluster import PureCluster, caller

SIZES = np.array([37, 64, 99, 0, 200, 600], dtype=np.int64)  # 1,000 samples in blocks unlike the shards of 30
LANES = 6


def announce(cluster: PureCluster, worker_id: str, lanes: list[int], **values: Any) -> bool:
    asked = {"dataset_id": "d", "manifest": "m", "num_lanes": LANES, "shuffle": True, "lanes": tuple(lanes), **values}
    return bool(cluster.ask(c.AnnounceReading(caller=caller(worker_id), **asked)))


def deflated(sizes: np.ndarray[Any, Any]) -> bytes:
    return zlib.compress(sizes.astype("<i8").tobytes())


def lanes_of(rank: int, world: int) -> list[int]:
    return [int(lane) for lane in plan_sticky(LANES, [str(one) for one in range(world)]).units_of(str(rank))]


def begin(cluster: PureCluster, *workers: str) -> None:
    """All ranks of a task announce, in their order."""
    for rank, worker in enumerate(workers):
        if not announce(cluster, worker, lanes_of(rank, len(workers))):
            assert announce(cluster, worker, lanes_of(rank, len(workers)), sizes=deflated(SIZES))


def told(table: ShardReaders) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {name: set() for name in table.workers}
    for number, start, stop in zip(table.readers.tolist(), table.starts.tolist(), table.stops.tolist(), strict=True):
        found[table.workers[number]] |= set(range(start, stop))
    return found


def read(worlds: int) -> list[set[int]]:
    """What loaders of these many ranks read, by their own layout."""
    layout = LaneLayout(SIZES, OrderSpec(manifest="m", seed=5, num_lanes=LANES))
    spans = [layout.samples_of(lanes_of(rank, worlds)) for rank in range(worlds)]
    return [{n for start, stop in zip(one.starts, one.stops, strict=True) for n in range(start, stop)} for one in spans]


@pytest.fixture
def cluster() -> PureCluster:
    cluster = PureCluster()
    cluster.dataset("d", 1000, 30)
    cluster.submit("t", worker_count=2, dataset_id="d")
    cluster.join_all("x", "y", task_id="t")
    return cluster


def test_nobody_reads_before_somebody_says_so(cluster: PureCluster) -> None:
    cluster.pass_time(0.2)
    table = cluster.state.shares.table("t", "d")
    assert (table.mode, len(table.shards), table.workers) == ("", 0, ())
    assert cluster.state.shares.reading_group("d") == ""
    assert cluster.state.shares.num_assigned(cluster.worker("x")) == 0


def test_a_cut_is_described_once_and_the_table_is_the_loaders_own(cluster: PureCluster) -> None:
    assert not announce(cluster, "x", lanes_of(0, 2))
    begin(cluster, "x", "y")
    assert [bool(event.sizes) for event in cluster.happened(ReadingAnnounced)] == [True, False]
    table = cluster.state.shares.table("t", "d")
    assert (table.mode, table.alive, table.ranks) == ("lanes", (True, True), (0, 1))
    assert told(table) == dict(zip("xy", read(2), strict=True))
    assert table.num_samples == tuple(len(part) for part in read(2))
    num_events = len(cluster.events)
    begin(cluster, "x", "y")
    assert len(cluster.events) == num_events, "the same again changes nothing"
    for worker, samples in zip("xy", read(2), strict=True):
        shards = {sample // 30 for sample in samples}
        assert cluster.state.shares.num_assigned(cluster.worker(worker)) == len(shards)
        parts = cluster.ask(c.GetShards(caller=caller(worker), dataset_id="d", epoch=1)).assignments
        assert {n for part in parts for n in range(part.start_index, part.end_index)} == samples
        assert {part.shard_id for part in parts} == shards


def test_one_window_of_a_table_is_the_same_window_of_the_whole(cluster: PureCluster) -> None:
    begin(cluster, "x", "y")
    whole, some = (cluster.state.shares.table("t", "d", *shown) for shown in ((), (10, 7)))
    inside = (whole.shards >= 10) & (whole.shards < 17)
    for name in ("shards", "starts", "stops", "readers"):
        assert getattr(some, name).tolist() == getattr(whole, name)[inside].tolist()


def test_a_lost_rank_keeps_its_lanes_and_is_shown_as_down_until_its_successor_is_there(cluster: PureCluster) -> None:
    begin(cluster, "x", "y")
    before = told(cluster.state.shares.table("t", "d"))
    cluster.lose("y")
    table = cluster.state.shares.table("t", "d")
    assert told(table) == before
    assert dict(zip(table.workers, table.alive, strict=True)) == {"x": True, "y": False}
    cluster.join("z", task_id="t")
    table = cluster.state.shares.table("t", "d")
    assert told(table) == {"x": before["x"], "z": before["y"]}
    assert table.alive == (True, True)


def test_a_restart_and_a_snapshot_know_the_same(cluster: PureCluster) -> None:
    begin(cluster, "x", "y")
    before = told(cluster.state.shares.table("t", "d"))
    assert told(cluster.reloaded().shares.table("t", "d")) == before
    cluster.restart()
    assert told(cluster.state.shares.table("t", "d")) == before


def test_a_new_process_with_another_order_replaces_what_the_old_one_said(cluster: PureCluster) -> None:
    begin(cluster, "x", "y")
    cluster.join("x", task_id="t", rank=0, incarnation="second")
    assert not announce(cluster, "x", [0], num_lanes=2)
    announce(cluster, "x", [0], num_lanes=2, sizes=deflated(SIZES))
    layout = LaneLayout(SIZES, OrderSpec(manifest="m", seed=0, num_lanes=2))
    table = cluster.state.shares.table("t", "d")
    assert len(told(table)["x"]) == layout.lane_length(0)


def test_a_task_that_is_over_reads_nothing(cluster: PureCluster) -> None:
    begin(cluster, "x", "y")
    assert cluster.state.shares.reading_group("d") == "t"
    cluster.ask(c.ChangeTask(task_id="t", status=TaskStatus.FAILED, reason="gone", attempt=1, course=TaskCourse()))
    assert cluster.state.shares.table("t", "d").mode == ""
    assert cluster.state.readings.dump() == {"layouts": [], "readers": []}
    assert cluster.state.shares.reading_group("d") == ""


def test_plain_workers_are_dealt_to_while_they_live(cluster: PureCluster) -> None:
    cluster.join_all("a", "b")
    cluster.pass_time(0.2)
    table = cluster.state.shares.table("", "d")
    assert table.mode == "dealt"
    assert set.union(*told(table).values()) == set(range(1000))
    assert sum(table.num_samples) == 1000
    cluster.lose("a")
    cluster.pass_time(0.2)
    assert told(cluster.state.shares.table("", "d")) == {"b": set(range(1000))}
    cluster.lose("b")
    assert cluster.state.shares.table("", "d").mode == "", "what nobody reads belongs to nobody"


def test_a_plain_worker_s_reading_ends_with_it(cluster: PureCluster) -> None:
    cluster.join("a")
    assert announce(cluster, "a", list(range(LANES)), sizes=deflated(SIZES))
    assert told(cluster.state.shares.table("", "d")) == {"a": set(range(1000))}
    cluster.lose("a")
    assert cluster.state.shares.table("", "d").mode == ""


def test_in_queue_mode_it_is_who_took_which_shard(cluster: PureCluster) -> None:
    def claim(worker: str) -> Any:
        return cluster.ask(c.ClaimShard(caller=caller(worker), dataset_id="d", epoch=0)).lease

    first, second = claim("x"), claim("y")
    table = cluster.state.shares.table("t", "d")
    assert table.mode == "queue"
    taken = {
        lease.shard_id: set(range(lease.start_index, lease.start_index + lease.num_rows)) for lease in (first, second)
    }
    assert told(table) == {"x": taken[first.shard_id], "y": taken[second.shard_id]}
    progress = (LeaseProgress(lease_id=first.lease_id, row=first.num_rows),)
    cluster.ask(c.CommitShards(caller=caller("x"), dataset_id="d", epoch=0, progress=progress))
    table = cluster.state.shares.table("t", "d")
    assert told(table)["x"] == taken[first.shard_id], "it stays with who read it, after the lease is over"
    assert dict(zip(table.shards.tolist(), table.committed.tolist(), strict=True))[first.shard_id] == first.num_rows
    assert cluster.state.shares.num_assigned(cluster.worker("x")) == 1
    cluster.lose("y")
    cluster.join("z", task_id="t")
    again = claim("z")
    assert again.shard_id == second.shard_id
    table = cluster.state.shares.table("t", "d")
    places = [table.workers[number] for number in table.readers[table.shards == second.shard_id].tolist()]
    assert places == ["z", "y"], "the last taker first"
    assert told(cluster.reloaded().shares.table("t", "d")) == told(table)


@pytest.mark.parametrize(
    "values",
    [
        {"num_lanes": 0},
        {"num_lanes": 10**9},
        {"sizes": b"junk"},
        {"sizes": zlib.compress(b"123")},
        {"sizes": zlib.compress(b"")},
        {"sizes": deflated(np.array([-1, 1001]))},
        {"sizes": deflated(np.array([999]))},
        {"sizes": zlib.compress(bytes(64 << 20))},
        {"sizes": deflated(SIZES) + bytes(2 << 20)},
    ],
)
def test_what_makes_no_sense_is_refused(cluster: PureCluster, values: dict[str, Any]) -> None:
    with cluster.refuses(InvalidArgument):
        announce(cluster, "x", [0], **{"sizes": deflated(SIZES), **values})


def test_lanes_that_are_not_there_are_refused(cluster: PureCluster) -> None:
    for lane in (-1, LANES):
        with cluster.refuses(InvalidArgument, "lanes must be 0 to 5"):
            announce(cluster, "x", [lane], sizes=deflated(SIZES))


def test_strangers_are_refused(cluster: PureCluster) -> None:
    with cluster.refuses(UnknownWorker):
        announce(cluster, "nobody", [0])
    with cluster.refuses(UnknownDataset):
        announce(cluster, "x", [0], dataset_id="nope")
