"""JAX: a slice per process, global arrays. Runs where jax is installed; the refusal without it runs everywhere else."""

import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strata.errors import InvalidArgument, MissingExtra

HAS_JAX = importlib.util.find_spec("jax") is not None


@pytest.fixture
def glob(tmp_path: Path) -> str:
    table = pa.table({"x": np.arange(50, dtype=np.int32), "text": [f"row {number}" for number in range(50)]})
    pq.write_table(table, tmp_path / "part-0.parquet", row_group_size=5)
    return str(tmp_path / "*.parquet")


@pytest.mark.skipif(HAS_JAX, reason="jax is installed")
def test_without_jax_the_extra_is_named() -> None:
    with pytest.raises(MissingExtra, match="jax"):
        importlib.import_module("strata.integrations.jax")


def test_an_epoch_as_global_arrays(glob: str, tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    from strata.integrations.jax import global_batches, process_loader

    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    loader = process_loader(glob, 8, columns=["x"], cache_dir=tmp_path)
    batches = list(global_batches(loader, sharding))
    assert [batch["x"].shape for batch in batches] == [(8,)] * 7
    seen = np.concatenate([np.asarray(batch["x"]) for batch in batches])
    assert sorted(set(seen.tolist())) == list(range(50))
    assert loader.stats.num_padded == 6
    assert batches[0]["x"].sharding == sharding


def test_what_a_device_cannot_hold_is_named(glob: str, tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    from strata.integrations.jax import global_batches, process_loader

    with pytest.raises(InvalidArgument, match="text"):
        next(global_batches(process_loader(glob, 8, cache_dir=tmp_path), jax.devices()[0]))
    with pytest.raises(InvalidArgument, match="ragged"):
        process_loader(glob, 8, tail="ragged", cache_dir=tmp_path)
