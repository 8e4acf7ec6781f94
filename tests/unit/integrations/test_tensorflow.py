"""tf.data: the loader's order and a position that is exact although tf.data reads ahead. Runs where tensorflow is
installed; the refusal without it runs everywhere else."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strata.data import Loader
from strata.errors import InvalidArgument, MissingExtra

HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None
needs_tensorflow = pytest.mark.skipif(not HAS_TENSORFLOW, reason="tensorflow is not installed")


@pytest.fixture
def glob(tmp_path: Path) -> str:
    for part in range(2):
        numbers = np.arange(50) + 50 * part
        table = pa.table(
            {
                "x": numbers.astype(np.float32),
                "text": [f"row {number}" for number in numbers],
                "series": [[float(number), 1.0, 2.0] for number in numbers],
                "ragged": [[1.0] * int(number % 3) for number in numbers],
            }
        )
        pq.write_table(table, tmp_path / f"part-{part}.parquet", row_group_size=5)
    return str(tmp_path / "*.parquet")


def source(glob: str, tmp_path: Path, **options: Any) -> Any:
    from strata.integrations.tensorflow import StrataSource

    return StrataSource(glob, 8, columns=("x", "text", "series"), seed=3, cache_dir=tmp_path, **options)


def numbers(batches: Any) -> list[list[float]]:
    return [batch["x"].numpy().tolist() for batch in batches]


def expected(glob: str, tmp_path: Path, epoch: int = 0, **options: Any) -> list[list[float]]:
    loader = Loader(glob, 8, columns=("x",), seed=3, cache_dir=tmp_path, **options)
    loader.set_epoch(epoch)
    return [batch["x"].tolist() for batch in loader]


@pytest.mark.skipif(HAS_TENSORFLOW, reason="tensorflow is installed")
def test_without_tensorflow_the_extra_is_named() -> None:
    with pytest.raises(MissingExtra, match="tensorflow"):
        importlib.import_module("strata.integrations.tensorflow")


@needs_tensorflow
def test_an_epoch_has_the_loader_s_batches_and_the_next_iteration_is_the_next_epoch(glob: str, tmp_path: Path) -> None:
    import tensorflow as tf

    found = source(glob, tmp_path)
    first = next(iter(found.dataset()))
    assert (first["x"].dtype, first["text"].dtype) == (tf.float32, tf.string)
    assert first["series"].shape == (8, 3)
    assert len(found) == 13
    assert numbers(found) == expected(glob, tmp_path)
    assert numbers(found) == expected(glob, tmp_path, epoch=1)


@needs_tensorflow
def test_the_position_counts_what_was_taken_not_what_was_read_ahead(glob: str, tmp_path: Path) -> None:
    whole = expected(glob, tmp_path)
    found = source(glob, tmp_path)
    taken = iter(found)
    before = numbers(next(taken) for _ in range(5))
    state = json.loads(json.dumps(found.state_dict()))
    assert state == found.state_at(5)
    assert before + numbers(taken) == whole
    again = source(glob, tmp_path)
    again.load_state_dict(state)
    assert numbers(again) == whole[5:]
    assert numbers(again) == expected(glob, tmp_path, epoch=1)
    alone = Loader(glob, 8, columns=("x",), seed=3, cache_dir=tmp_path)
    alone.load_state_dict(state)
    assert [batch["x"].tolist() for batch in alone] == whole[5:], "it is the loader's own state"


@needs_tensorflow
def test_an_iteration_that_was_broken_off_goes_on_after_the_last_batch(glob: str, tmp_path: Path) -> None:
    found = source(glob, tmp_path)
    taken = []
    for batch in found:
        taken.append(batch["x"].numpy().tolist())
        if len(taken) == 4:
            break
    assert taken + numbers(found) == expected(glob, tmp_path)


@needs_tensorflow
def test_ranks_share_an_epoch_and_a_dataset_can_be_mapped_and_prefetched(glob: str, tmp_path: Path) -> None:
    parts = [source(glob, tmp_path, rank=rank, world_size=2) for rank in range(2)]
    seen = [
        float(value)
        for part in parts
        for batch in part.dataset().map(lambda batch: batch["x"] * 2).prefetch(2)
        for value in batch.numpy()
    ]
    assert sorted(seen) == [2.0 * number for number in range(100)]


@needs_tensorflow
def test_ragged_rows_are_refused_by_name(glob: str, tmp_path: Path) -> None:
    from strata.integrations.tensorflow import StrataSource

    with pytest.raises(InvalidArgument, match="'ragged'"):
        StrataSource(glob, 8, columns=("x", "ragged"), cache_dir=tmp_path)
