"""A checkpoint as a folder that other tools read, and back. The files are read by the format's own words."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strata.checkpoint import CheckpointManager, Sharded
from strata.checkpoint.catalog import Catalog
from strata.checkpoint.export import INDEX, export_folder, read_safetensors
from strata.checkpoint.reader import CheckpointReader
from strata.clock import SystemClock
from strata.errors import CheckpointNotFound, CorruptCheckpoint
from strata.storage.uri import open_store
from tests.support.thread_commit import ThreadCommit

_MODEL = {"a.weight": np.arange(6.0).reshape(2, 3), "b.bias": np.ones(4, dtype=np.float32), "n": np.array(7)}


def _header(file: Path) -> dict[str, Any]:
    data = file.read_bytes()
    found: dict[str, Any] = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return found


def test_a_small_model_is_one_file_that_says_its_format(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path / "run") as manager:
        manager.save({"parts": {"model": _MODEL, "optimizer": {"m": np.ones(2)}}}, 5)
        done = manager.export(tmp_path / "hf")
    assert (done.part, done.files, set(done.names)) == ("parts/model", ("model.safetensors",), set(_MODEL))
    header = _header(tmp_path / "hf" / "model.safetensors")
    assert header.pop("__metadata__")["format"] == "pt"
    assert {name: (entry["dtype"], entry["shape"]) for name, entry in header.items()} == {
        "a.weight": ("F64", [2, 3]),
        "b.bias": ("F32", [4]),
        "n": ("I64", []),
    }
    back = read_safetensors(tmp_path / "hf")
    assert all(np.array_equal(np.asarray(back[name]), value) for name, value in _MODEL.items())


def test_shards_of_ranks_become_whole_and_files_stay_small(tmp_path: Path) -> None:
    decider = ThreadCommit(ranks=(0, 1))
    managers = [CheckpointManager(tmp_path / "run", rank=rank, world_size=2, coordinator=decider) for rank in (0, 1)]
    whole = np.arange(20.0).reshape(10, 2)
    handles = []
    for rank, manager in enumerate(managers):
        block = Sharded(whole[rank * 5 : rank * 5 + 5], whole.shape, (rank * 5, 0))
        state = {"model": {"w": block, "b": np.ones(3), f"only.{rank}": np.full(2, rank)}}
        handles.append(manager.save_async(state, 3))
    for handle, manager in zip(handles, managers, strict=True):
        handle.result(30)
        manager.close()
    store = open_store(str(tmp_path / "run"))
    reader = CheckpointReader(store, Catalog(store, SystemClock()).commit_of(3))
    done = export_folder(reader, open_store(str(tmp_path / "hf")), shard_bytes=100)
    index = json.loads((tmp_path / "hf" / INDEX).read_text())
    assert index["metadata"]["total_size"] == done.num_bytes == 160 + 24 + 16 + 16
    assert set(index["weight_map"]) == {"w", "b", "only.0", "only.1"}
    assert set(index["weight_map"].values()) == set(done.files)
    assert len(done.files) > 1
    back = read_safetensors(tmp_path / "hf")
    assert np.array_equal(np.asarray(back["w"]), whole)
    assert np.asarray(back["only.1"]).tolist() == [1, 1]


def test_a_flipped_bit_is_not_exported(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path / "run") as manager:
        manager.save({"model": _MODEL}, 5)
        [file] = (tmp_path / "run").glob("step-*/*/rank-00000.safetensors")
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(data)
        with pytest.raises(CorruptCheckpoint, match="does not match its hash"):
            manager.export(tmp_path / "hf")
        assert not (tmp_path / "hf" / "model.safetensors").exists()
        with pytest.raises(CheckpointNotFound, match=r"no arrays below 'ema'"):
            manager.export(tmp_path / "hf", part="ema")


@pytest.mark.parametrize("data", [b"", b"\xff" * 20, (2).to_bytes(8, "little") + b"[]", b"\x00" * 8])
def test_a_file_that_is_none_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(CorruptCheckpoint, match="cannot be read as safetensors"):
        read_safetensors(tmp_path / "model.safetensors")


def test_an_array_beyond_the_end_is_refused(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\x00" * 8)
    with pytest.raises(CorruptCheckpoint, match="other bytes than its shape says"):
        read_safetensors(tmp_path)
