"""What a rank reads and sums at every size of the world: the same shares, the same rows in the same order."""

from pathlib import Path

import numpy as np
import pytest

from strata.config import Settings
from strata.data.blocks import INDEX
from strata.data.loader import Loader
from strata.worker.environment import Place, find_place
from strata.worker.plan import SharePlan, WorkerPlan, owners, shares_of
from tests.support.nodes import write_dataset

_WORKERS, _BATCH = 4, 6


def _place(rank: int, world_size: int) -> Place:
    return Place(settings=Settings(), rank=rank, world_size=world_size, worker_count=_WORKERS)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_dataset(tmp_path_factory.mktemp("data"), rows=1_003)


def _by_share(data: str, world_size: int) -> dict[int, list[list[int]]]:
    """Per share, the samples of every batch, as all ranks of a world of this size split them."""
    found: dict[int, list[list[int]]] = {}
    for rank in range(world_size):
        plan = SharePlan(_place(rank, world_size))
        loader = Loader(data, _BATCH, plan=plan, with_index=True)
        of_lane = plan.share_of_lane(loader.order.spec.num_lanes)
        for batch in loader:
            of_row = np.repeat([of_lane[lane] for lane in loader.lanes], loader.lane_rows)
            assert len(of_row) == len(batch[INDEX])
            for share in plan.shares:
                found.setdefault(share, []).append(batch[INDEX][of_row == share].tolist())
    return found


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_a_share_has_the_same_rows_at_every_size(data: str, world_size: int) -> None:
    whole = _by_share(data, _WORKERS)
    assert sorted(whole) == list(range(_WORKERS))
    assert sorted(row for batches in whole.values() for batch in batches for row in batch) == list(range(1_000))
    assert _by_share(data, world_size) == whole


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_lanes_are_dealt_to_any_size_and_the_global_batch_stays(data: str, world_size: int) -> None:
    """Loaders of scripts deal lanes one by one, as evenly as that goes."""
    loaders = [Loader(data, _BATCH, plan=WorkerPlan(_place(rank, world_size))) for rank in range(world_size)]
    lanes = [lane for loader in loaders for lane in loader.lanes]
    assert sorted(lanes) == list(range(loaders[0].order.spec.num_lanes))
    assert {loader.order.global_batch for loader in loaders} == {_WORKERS * _BATCH}
    counts = [len(loader.lanes) for loader in loaders]
    assert max(counts) - min(counts) <= 1


def test_every_share_has_one_rank_and_every_rank_a_share() -> None:
    for workers in range(1, 20):
        for size in range(1, workers + 1):
            dealt = [share for rank in range(size) for share in shares_of(rank, size, workers)]
            assert dealt == list(range(workers))
            assert all(shares_of(rank, size, workers) for rank in range(size))
            assert owners(size, workers)[-1] == size - 1


def test_the_declared_size_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    task = {"STRATA_TASK_ID": "t", "STRATA_WORKER_ID": "t-0", "STRATA_INCARNATION": "t.1.0", "STRATA_WORLD_SIZE": "3"}
    assert WorkerPlan(find_place({**task, "STRATA_WORKER_COUNT": "4"})).worker_count == 4
    assert WorkerPlan(find_place(task)).worker_count == 3
