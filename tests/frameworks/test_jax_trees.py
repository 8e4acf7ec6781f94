"""Pytrees over four devices of one process: saved with one sharding, restored with another."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jax.config.update("jax_num_cpu_devices", 4)

from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402  # only where jax is

from strata.checkpoint import CheckpointManager  # noqa: E402  # as above
from strata.errors import CorruptCheckpoint, InvalidArgument  # noqa: E402  # as above
from strata.integrations.jax_trees import pack_tree, restore_tree  # noqa: E402  # as above

pytestmark = pytest.mark.frameworks


def _on(*axes: str | None, shape: tuple[int, ...] = (2, 2)) -> Any:
    mesh = Mesh(np.array(jax.devices()).reshape(shape), ("a", "b"))
    return NamedSharding(mesh, PartitionSpec(*axes))


def _tree(sharding: Any, factor: float = 1.0) -> Any:
    whole = np.arange(48, dtype=np.float32).reshape(8, 6) * factor
    return {
        "params": {"w": jax.device_put(whole, sharding), "b": jax.device_put(whole[0].astype("bfloat16"), _on())},
        "key": jax.random.key(int(factor)),
        "count": [int(factor), np.arange(3) * factor, None],
    }


def test_any_sharding_restores_what_another_has_saved(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as checkpoints:
        assert restore_tree(checkpoints, _tree(_on("a", "b"))) is None
        packed = pack_tree(_tree(_on("a", "b")))
        assert len([name for name in packed if name.startswith("params/w@")]) == 4
        assert len([name for name in packed if name.startswith("params/b@")]) == 1  # replicated: saved once
        checkpoints.save(packed, 5, data_state={"position": 7})
        for wanted in (_on("a", "b"), _on("b"), _on(None, "a"), _on()):
            found = restore_tree(checkpoints, _tree(wanted, 2.0))
            assert found is not None
            assert (found.info.step, found.data_state) == (5, {"position": 7})
            expected = _tree(wanted)
            assert found.state["params"]["w"].sharding == wanted
            assert found.state["count"][0] == 1
            np.testing.assert_array_equal(found.state["count"][1], expected["count"][1])
            np.testing.assert_array_equal(found.state["params"]["w"], expected["params"]["w"])
            np.testing.assert_array_equal(found.state["params"]["b"], expected["params"]["b"])
            assert jax.random.bits(found.state["key"]) == jax.random.bits(expected["key"])


def test_a_damaged_checkpoint_is_passed_over_and_named(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as checkpoints:
        for step in (1, 2):
            checkpoints.save(pack_tree(_tree(_on("a"), step)), step)
        path = next((tmp_path / "step-000000000002").rglob("*.safetensors"))
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        with pytest.raises(CorruptCheckpoint, match="step 2, rank 0, chunk 0"):
            restore_tree(checkpoints, _tree(_on("a")), 2)
        found = restore_tree(checkpoints, _tree(_on("a")))
        assert found is not None
        assert found.info.step == 1


def test_an_array_of_another_shape_is_named(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as checkpoints:
        checkpoints.save(pack_tree({"w": jax.numpy.ones((4, 2))}), 1)
        with pytest.raises(InvalidArgument, match=r"w was saved as float32\[4, 2\], and is wanted as float32\[4, 3\]"):
            restore_tree(checkpoints, {"w": jax.numpy.ones((4, 3))}, 1)
