"""Windows that open row by row: the same rows in the same order as a window that was read whole, from fewer blocks."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strata.data import Columns, Loader, build_manifest
from strata.data.blocks import BlockSource
from strata.data.opening import OpeningWindow
from strata.data.table.columns import Block, take
from strata.errors import DataError
from strata.sharding.lanes import LaneLayout, OrderSpec

if TYPE_CHECKING:
    from tests.support.datasets import Dataset


class CountedBlocks(BlockSource):
    """Counts what is read."""

    num_reads = 0

    def read(self, shard: int) -> Block:
        self.num_reads += 1
        return super().read(shard)


def write_ragged(folder: Path) -> str:
    """Lists of equal length in some blocks and of many lengths in others, texts, floats with nulls."""
    for number in range(4):
        ids = range(number * 60, (number + 1) * 60)
        lists = [[row] * (2 if (row // 10) % 2 else row % 4) for row in ids]
        floats = [None if row % 7 == 0 else row / 3 for row in ids]
        table = pa.table({"id": list(ids), "list": lists, "text": [f"row {row}" for row in ids], "float": floats})
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=10)
    return str(folder / "*.parquet")


def write_damaged(folder: Path) -> str:
    """JSON lines, of which every ninth after a file's first block is none."""
    text = "x" * 20_000
    for number in range(2):
        ids = range(number * 120, (number + 1) * 120)
        good = [f'{{"id": {row}, "text": "{text}"}}' if row % 9 or row - ids[0] < 60 else "not json" for row in ids]
        (folder / f"part-{number}.jsonl").write_text("\n".join(good) + "\n")
    return str(folder / "*.jsonl")


def same(one: Columns, other: Columns) -> bool:
    """Bit for bit, types included."""
    return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)


def _equal(one: Any, other: Any) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype != object:
        return bool(one.tobytes() == other.tobytes())
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), num_lanes=st.sampled_from([1, 2, 4]), window=st.integers(1, 8), threads=st.sampled_from([0, 2]))
@pytest.mark.parametrize("write", [write_ragged, write_damaged])
def test_resumed_anywhere_the_batches_are_equal_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, write: Any, data: st.DataObject, num_lanes: int, window: int, threads: int
) -> None:
    options: Any = {"num_lanes": num_lanes, "window": window, "on_error": "skip", "with_index": True}
    glob = _written(tmp_path_factory, write)
    whole = Loader(glob, 8, num_threads=0, **options)
    expected = list(whole)
    stop = data.draw(st.integers(0, len(expected) - 1))
    resumed = Loader(glob, 8, num_threads=threads, **options)
    resumed.load_state_dict(Loader(glob, 8, **options).state_at(stop))
    found = list(resumed)
    assert len(found) == len(expected) - stop
    assert all(same(one, other) for one, other in zip(found, expected[stop:], strict=True))


_folders: dict[Any, str] = {}


def _written(factory: pytest.TempPathFactory, write: Any) -> str:
    if write not in _folders:
        _folders[write] = write(factory.mktemp("opening"))
    return _folders[write]


@pytest.mark.parametrize("write", [write_ragged, write_damaged])
def test_what_is_picked_is_what_the_whole_window_holds(tmp_path: Path, write: Any) -> None:
    manifest = build_manifest(write(tmp_path))
    layout = LaneLayout(manifest.sizes, OrderSpec(manifest=manifest.digest, seed=3, num_lanes=2, window=6))
    source = BlockSource(manifest, on_bad=lambda error: None)
    for lane in (layout.lane(0, 1), layout.lane(1, 1)):
        for index in range(lane.num_windows):
            window = lane.window(index)
            rows, opening = source.window(window), OpeningWindow(source, window)
            for low in range(window.start, window.stop, 5):
                high = min(low + 5, window.stop)
                assert same(_normal(*opening.pick(low, high)), _normal(*rows.pick(low, high)))


def _normal(columns: Columns, rows: slice) -> Columns:
    """Equal lists of a block are a matrix, those of a whole window need not be: a batch makes both the same."""
    picked = take(columns, rows)
    if not len(next(iter(picked.values()), ())):
        return {}
    return {name: _cells(values) for name, values in picked.items()}


def _cells(values: Any) -> Any:
    if values.ndim == 1:
        return values
    cells = np.empty(len(values), dtype=object)
    cells[:] = list(values)
    return cells


def test_a_batch_reads_only_the_blocks_in_which_its_rows_lie(parquet: "Dataset") -> None:
    manifest = build_manifest(parquet.glob)
    source = CountedBlocks(manifest)
    layout = LaneLayout(manifest.sizes, OrderSpec(manifest=manifest.digest, seed=0, num_lanes=1, window=8))
    window = layout.lane(0, 0).window(1)
    assert len(window.shards) == 8
    opening = OpeningWindow(source, window)
    opening.pick(window.start, window.start + 2)
    assert source.num_reads <= 2
    for low in range(window.start, window.stop):
        opening.pick(low, low + 1)
    assert source.num_reads == 8, "and each of them once, though the window became a whole one on the way"


def test_a_block_that_cannot_be_read_is_raised_by_the_batch_that_needs_it(parquet: "Dataset") -> None:
    expected = [batch["id"].tolist() for batch in Loader(parquet.glob, 6, num_threads=0)]
    loader = Loader(parquet.glob, 6, num_threads=0, with_index=True)
    victim = sorted(parquet.folder.glob("*.parquet"))[2]
    bad = range(47, 110)  # the rows of the third file
    victim.write_bytes(victim.read_bytes()[:4] + b"\xff" * (victim.stat().st_size - 4))
    seen: list[list[int]] = []
    with pytest.raises(DataError, match=victim.name):
        seen.extend(batch["id"].tolist() for batch in loader)
    assert seen == expected[: len(seen)]
    assert all(number not in bad for batch in seen for number in batch)


def test_breaking_off_while_windows_open_leaves_no_thread(parquet: "Dataset") -> None:
    loader = Loader(parquet.glob, 6, num_threads=2)
    first = list(islice(loader, 1))
    loader.close()
    assert first
    assert len(list(loader)) == len(loader) - 1
