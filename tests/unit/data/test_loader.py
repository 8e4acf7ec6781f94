"""Loader: every sample once, the same global batches for every world size, and a state that resumes anywhere."""

import json
import subprocess
import sys
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strata.ambient import ambient
from strata.data import Columns, DatasetSource, Loader, QueueLoader
from strata.errors import InvalidArgument, Refused

if TYPE_CHECKING:
    from tests.support.datasets import Dataset

BATCH = 12


def ids(batches: Iterable[Columns]) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def flat(batches: list[list[int]]) -> list[int]:
    return [number for batch in batches for number in batch]


@pytest.fixture(params=[0, 2], ids=["inline", "threads"])
def num_threads(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_every_sample_once_in_every_format(dataset: "Dataset", num_threads: int) -> None:
    loader = Loader(dataset.glob, BATCH, num_threads=num_threads, with_index=True)
    batches = list(loader)
    assert len(batches) == len(loader) == -(-140 // BATCH)
    assert sorted(flat(ids(batches))) == list(range(140))
    for batch in batches:
        assert np.array_equal(batch["__index__"], batch["id"])
        if "vector" in batch:
            assert np.array_equal(batch["vector"], np.repeat(batch["id"], 4).reshape(-1, 4))
        texts = batch.get("text", batch.get("txt"))
        if texts is not None:
            assert texts.tolist() == [f"row {number}" for number in batch["id"]]
    assert loader.epoch == 1
    second = flat(ids(loader))
    assert sorted(second) == list(range(140))
    assert second != flat(ids(batches))


@pytest.mark.parametrize("seed", [float("nan"), 0.5, "", "7"])
def test_a_seed_that_is_no_whole_number_is_named(parquet: "Dataset", seed: Any) -> None:
    with pytest.raises(InvalidArgument, match=f"seed is {seed!r}, it must be a whole number"):
        Loader(parquet.glob, batch_size=4, seed=seed)
    counted: Any = np.int64(7)
    assert ids(Loader(parquet.glob, batch_size=4, seed=counted)) == ids(Loader(parquet.glob, batch_size=4, seed=7))


@pytest.mark.parametrize("dataset", [None, float("nan"), 2**70, [None]], ids=repr)
def test_a_dataset_that_is_no_path_is_named(dataset: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"the dataset is .*, it must be a path"):
        Loader(dataset, batch_size=4)


@pytest.mark.parametrize("size", [0, -1, 32.0, "32", float("nan"), None, 2**70])
def test_a_batch_size_that_is_none_is_named(size: Any) -> None:
    for loader in (Loader, QueueLoader):
        with pytest.raises(InvalidArgument, match="batch_size"):
            loader("none.parquet", size)


def test_unshuffled_alone_is_the_files_as_they_lie(dataset: "Dataset") -> None:
    assert flat(ids(Loader(dataset.glob, BATCH, shuffle=False))) == list(range(140))


@pytest.mark.parametrize("world_size", [1, 2, 3, 8])
def test_global_batches_do_not_depend_on_the_world_size(parquet: "Dataset", world_size: int) -> None:
    alone = ids(Loader(parquet.glob, 2, worker_count=8, num_threads=0))
    parts = [
        ids(Loader(parquet.glob, 2, rank=rank, world_size=world_size, worker_count=8, num_threads=0))
        for rank in range(world_size)
    ]
    together = [sorted(flat(list(step))) for step in zip(*parts, strict=True)]
    assert together == [sorted(batch) for batch in alone]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stop=st.integers(0, 12), world=st.sampled_from([1, 2, 3]), tail=st.sampled_from(["ragged", "drop", "pad"]))
def test_any_world_size_goes_on_from_any_position(parquet: "Dataset", stop: int, world: int, tail: Any) -> None:
    options: Any = {"worker_count": 2, "tail": tail, "num_threads": 0}
    whole = Loader(parquet.glob, 6, **options)
    expected = ids(whole) + ids(whole)
    first = Loader(parquet.glob, 6, **options)
    seen = list(islice(first, stop))
    state = json.loads(json.dumps(first.state_dict()))
    rest: list[list[list[int]]] = []
    for rank in range(world):
        loader = Loader(parquet.glob, 6, rank=rank, world_size=world, **options)
        loader.load_state_dict(state)
        rest.append(ids(loader))
    resumed = [sorted(flat(list(step))) for step in zip(*rest, strict=True)]
    start = len(seen)
    epoch_end = start + len(resumed)
    assert resumed == [sorted(batch) for batch in expected[start:epoch_end]]
    assert epoch_end in (len(whole), 2 * len(whole))


@pytest.mark.parametrize("after", ["0", "1", "n-1", "n"])
def test_save_and_load_at_the_edges(parquet: "Dataset", after: str) -> None:
    loader = Loader(parquet.glob, BATCH)
    steps = {"0": 0, "1": 1, "n-1": len(loader) - 1, "n": len(loader)}[after]
    iterator = iter(loader)
    for _ in range(steps):
        next(iterator)
    state = loader.state_dict()
    assert len(json.dumps(state)) < 300
    other = Loader(parquet.glob, BATCH)
    other.load_state_dict(state)
    assert (other.epoch, other.position) == ((1, 0) if after == "n" else (0, steps * BATCH))
    fresh = Loader(parquet.glob, BATCH)
    assert fresh.state_at(steps) == state
    expected = ids(fresh) + ids(fresh)
    assert next(iter(other))["id"].tolist() == expected[steps]


def test_breaking_off_goes_on_and_set_epoch_starts_over(parquet: "Dataset") -> None:
    loader = Loader(parquet.glob, BATCH)
    expected = ids(Loader(parquet.glob, BATCH))
    for batch in loader:
        assert batch["id"].tolist() == expected[0]
        break
    assert next(iter(loader))["id"].tolist() == expected[1]
    loader.set_epoch(0)
    assert next(iter(loader))["id"].tolist() == expected[0]
    loader.close()


def test_loading_a_state_ends_the_running_iteration(parquet: "Dataset") -> None:
    loader = Loader(parquet.glob, BATCH)
    start = loader.state_dict()
    seen = 0
    for _ in loader:
        seen += 1
        if seen == 2:
            loader.load_state_dict(start)
    assert seen == 2
    assert loader.position == 0


def test_a_state_of_other_data_is_refused(parquet: "Dataset") -> None:
    state = Loader(parquet.glob, BATCH).state_dict()
    with pytest.raises(Refused, match="belongs to order"):
        Loader(parquet.glob, BATCH, seed=1).load_state_dict(state)
    with pytest.raises(Refused, match="lanes") as refused:
        Loader(parquet.glob, 5).load_state_dict({**state, "num_lanes": 3})
    assert "worker_count" in refused.value.hint
    parquet.add(5)
    with pytest.raises(Refused, match="belongs to order"):
        Loader(parquet.glob, BATCH).load_state_dict(state)


def test_a_copy_of_the_data_elsewhere_has_the_same_order(parquet: "Dataset") -> None:
    before = Loader(parquet.glob, BATCH)
    moved = parquet.folder / "elsewhere"
    moved.mkdir()
    for path in sorted(parquet.folder.glob("*.parquet")):
        (moved / path.name).write_bytes(path.read_bytes())
    after = Loader(str(moved / "*.parquet"), BATCH)
    assert after.manifest.digest == before.manifest.digest
    assert ids(after) == ids(before)


def test_strides_share_the_batches_of_an_epoch(parquet: "Dataset") -> None:
    expected = ids(Loader(parquet.glob, BATCH))
    for stride in (1, 2, 5, 40):
        parts = [ids(Loader(parquet.glob, BATCH).batches(first, stride)) for first in range(stride)]
        assert [parts[step % stride][step // stride] for step in range(len(expected))] == expected


def test_transform_runs_on_every_batch_in_order(parquet: "Dataset", num_threads: int) -> None:
    loader = Loader(parquet.glob, BATCH, num_threads=num_threads, transform=lambda batch: {"id": batch["id"] * 2})
    assert ids(loader) == [[2 * number for number in batch] for batch in ids(Loader(parquet.glob, BATCH))]


def test_errors_of_a_transform_come_out(parquet: "Dataset", num_threads: int) -> None:
    def broken(batch: Columns) -> Columns:
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        next(iter(Loader(parquet.glob, BATCH, num_threads=num_threads, transform=broken)))


def test_reading_ahead_stays_inside_its_budget(parquet: "Dataset") -> None:
    loader = Loader(parquet.glob, BATCH, num_threads=2, prefetch_bytes=500, window=1)
    highest = 0
    for _ in loader:
        highest = max(highest, loader.stats.ahead_bytes)
    assert 0 < highest <= 500 + 2 * loader.manifest.block_bytes
    assert loader.stats.num_samples == 140


def test_memory_bounds_the_window_and_the_lanes(parquet: "Dataset") -> None:
    small = Loader(parquet.glob, 64, memory_bytes=1)
    assert (small.order.spec.num_lanes, small.order.spec.window) == (1, 1)
    assert sorted(flat(ids(small))) == list(range(140))


class Coordinator:
    """A plan source that hands out every second lane: what the worker runtime implements over gRPC."""

    worker_count = 2

    def __init__(self, path: str) -> None:
        self.path = path

    def resolve(self, dataset: str) -> DatasetSource | None:
        return DatasetSource(path=self.path, format="parquet", shuffle=True, seed=9) if dataset == "ds-001" else None

    def plan(self, dataset: str, num_lanes: int) -> tuple[int, ...]:
        return tuple(range(0, num_lanes, 2))


def test_the_worker_runtime_can_provide_the_plan(parquet: "Dataset") -> None:
    ambient.plan = lambda: Coordinator(parquet.glob)
    loader = Loader("ds-001", 6)
    assert loader.config.seed == 9
    assert loader.lanes == tuple(range(0, loader.order.spec.num_lanes, 2))
    assert Loader(parquet.glob, 6, world_size=2).config.seed is None


def test_a_loader_that_was_made_before_the_run_joins_it_once(parquet: "Dataset") -> None:
    early, given, read = Loader(parquet.glob, 6), Loader(parquet.glob, 6, world_size=2), Loader(parquet.glob, 6)
    next(iter(read))
    told = Coordinator(parquet.glob)
    ambient.plan = lambda: told
    for loader in (early, given, read):
        loader.join()
    assert early.lanes == Loader(parquet.glob, 6).lanes
    assert (len(early), given.config.world_size) == (len(Loader(parquet.glob, 6)), 2)
    assert len(read.lanes) > len(early.lanes), "one that was read from stays as it is"


def test_bad_options_are_refused(parquet: "Dataset") -> None:
    with pytest.raises(InvalidArgument, match="batch_size"):
        Loader(parquet.glob, 0)
    with pytest.raises(InvalidArgument, match="140 samples are less than one global batch of 200"):
        Loader(parquet.glob, 200, tail="drop")
    with pytest.raises(InvalidArgument, match="rank 3"):
        Loader(parquet.glob, 4, rank=3, world_size=2)
    with pytest.raises(InvalidArgument, match="on_error is 'ignore'"):
        Loader(parquet.glob, 4, on_error="ignore")  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidArgument, match="format of 'data/things'"):
        Loader("data/things", 4)
    with pytest.raises(InvalidArgument, match="'xls' is unknown"):
        Loader("data/things", 4, format="xls")


def test_without_pyarrow_the_import_works_and_the_error_says_what_to_install(parquet: "Dataset") -> None:
    program = (
        "import sys\n"
        "sys.modules['pyarrow'] = sys.modules['pyarrow.parquet'] = sys.modules['PIL'] = None\n"
        "import strata.data\n"
        "from strata.errors import MissingExtra\n"
        "try:\n"
        "    strata.data.Loader(sys.argv[1], 4)\n"
        "except MissingExtra as error:\n"
        "    print(error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, parquet.glob], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "pip install 'strata-runtime[data]'"
