"""A fork leaves out the batches that it was told, and no other, whatever its size, and wherever it is resumed."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strata.ambient import ambient
from strata.data import Loader
from strata.errors import InvalidArgument, Refused
from strata.types.forks import ForkedData

if TYPE_CHECKING:
    from tests.support.datasets import Dataset

BATCH = 12
EPOCHS = 3


def endless(loader: Loader) -> Iterator[list[int]]:
    while True:
        for batch in loader:
            yield batch["id"].tolist()


def rest(loader: Loader, epochs: int = EPOCHS) -> list[list[int]]:
    found = []
    while loader.epoch < epochs:
        found += [batch["id"].tolist() for batch in loader]
    return found


def global_rest(glob: str, state: dict[str, Any], world: int) -> list[list[int]]:
    """The batches of all ranks together, each sorted: who reads a sample is not what counts."""
    parts = []
    for rank in range(world):
        loader = Loader(glob, BATCH // 4, rank=rank, world_size=world, worker_count=4, num_lanes=4)
        loader.load_state_dict(state)
        parts.append(rest(loader))
    return [sorted(chain(*batch)) for batch in zip(*parts, strict=True)]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(taken=st.integers(0, 30), first=st.integers(0, 40), count=st.integers(1, 40), world=st.sampled_from([1, 2, 3]))
def test_exactly_the_named_batches_are_left_out(
    parquet: "Dataset", taken: int, first: int, count: int, world: int
) -> None:
    ambient.forked = None
    loader = Loader(parquet.glob, BATCH // 4, worker_count=4, num_lanes=4)
    list(islice(endless(loader), taken))
    state = loader.state_dict()
    whole = [sorted(batch) for batch in rest(loader)]
    ambient.forked = ForkedData(name="child", skip=((first, first + count - 1),))
    assert global_rest(parquet.glob, state, world) == whole[:first] + whole[first + count :]


def test_a_forked_loader_goes_on_from_its_own_state(parquet: "Dataset") -> None:
    loader = Loader(parquet.glob, BATCH, num_lanes=4)
    list(islice(endless(loader), 3))
    parent = loader.state_dict()
    whole = rest(loader)
    ambient.forked = ForkedData(name="child", skip=((2, 4), (12, 13)))
    expected = whole[:2] + whole[5:12] + whole[14:]
    for taken in range(len(expected)):
        child = Loader(parquet.glob, BATCH, num_lanes=4)
        child.load_state_dict(parent)
        read = list(islice(endless(child), taken))
        assert child.state_dict() == _at(parquet, parent, taken)
        again = Loader(parquet.glob, BATCH, num_lanes=4)
        again.load_state_dict(child.state_dict())
        assert read + rest(again) == expected


def _at(parquet: "Dataset", parent: dict[str, Any], taken: int) -> dict[str, Any]:
    counting = Loader(parquet.glob, BATCH, num_lanes=4)
    counting.load_state_dict(parent)
    return counting.state_at(taken)


def test_a_fork_of_a_fork_counts_as_its_parent_trained(parquet: "Dataset") -> None:
    loader = Loader(parquet.glob, BATCH, num_lanes=4)
    start = loader.state_dict()
    whole = rest(loader)
    ambient.forked = ForkedData(name="child", skip=((3, 5),))
    child = Loader(parquet.glob, BATCH, num_lanes=4)
    child.load_state_dict(start)
    list(islice(endless(child), 1))
    begin = child.state_dict()
    trained = rest(child)
    ambient.forked = ForkedData(name="grandchild", skip=((1, 3),))
    grandchild = Loader(parquet.glob, BATCH, num_lanes=4)
    grandchild.load_state_dict(begin)
    assert rest(grandchild) == trained[:1] + trained[4:]
    assert trained[:1] + trained[4:] == whole[1:2] + whole[8:]


def test_pools_of_workers_share_what_is_left(parquet: "Dataset") -> None:
    loader = Loader(parquet.glob, BATCH, num_lanes=4)
    start = loader.state_dict()
    ambient.forked = ForkedData(name="child", skip=((2, 3), (7, 7)))
    loader.load_state_dict(start)
    expected = [batch["id"].tolist() for batch in loader]
    for stride in (2, 3, 5):
        pool = []
        for worker in range(stride):
            loader.load_state_dict(start)
            pool.append([batch["id"].tolist() for batch in loader.batches(worker, stride)])
        assert [pool[step % stride][step // stride] for step in range(len(expected))] == expected


def test_a_whole_epoch_may_be_left_out(parquet: "Dataset") -> None:
    loader = Loader(parquet.glob, BATCH, num_lanes=4)
    start, whole = loader.state_dict(), rest(loader)
    ambient.forked = ForkedData(name="child", skip=((len(loader), 2 * len(loader) - 1),))
    loader.load_state_dict(start)
    assert rest(loader) == whole[: len(loader)] + whole[2 * len(loader) :]


def test_another_global_batch_is_refused(parquet: "Dataset") -> None:
    state = Loader(parquet.glob, BATCH, num_lanes=4).state_dict()
    ambient.forked = ForkedData(name="child", skip=((2, 3),))
    with pytest.raises(Refused, match="the global batch was 12 and is 16"):
        Loader(parquet.glob, 16, num_lanes=4).load_state_dict(state)
    child = Loader(parquet.glob, BATCH, num_lanes=4)
    child.load_state_dict(state)
    with pytest.raises(Refused, match="no border of global batches of 16"):
        Loader(parquet.glob, 16, num_lanes=4).load_state_dict(child.state_dict())


@pytest.mark.parametrize("skips", [5, [[0, 1]], [[0, 4, 4]], [[-1, 0, 4]], [["0", 0, 4]], [[0, 0, 10**9]], [[0, 1, 8]]])
def test_a_state_from_elsewhere_is_checked(parquet: "Dataset", skips: object) -> None:
    loader = Loader(parquet.glob, BATCH, num_lanes=4)
    with pytest.raises(InvalidArgument):
        loader.load_state_dict({**loader.state_dict(), "skips": skips})
