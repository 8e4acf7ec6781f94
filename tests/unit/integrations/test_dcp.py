"""torch.distributed.checkpoint on Strata's store: in one process. Needs torch."""

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.distributed.checkpoint as dcp  # noqa: E402  # only where torch is

from strata.checkpoint import CheckpointManager  # noqa: E402  # as above
from strata.integrations.dcp import StrataReader, StrataWriter  # noqa: E402  # as above
from tests.support.seaweed import seaweed  # noqa: E402  # as above

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:torch.distributed is disabled"),
    pytest.mark.filterwarnings("ignore:TypedStorage is deprecated"),
]


def _trained(seed: int) -> tuple[Any, Any]:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(30, 40), torch.nn.BatchNorm1d(40), torch.nn.Linear(40, 5))
    optimizer = torch.optim.AdamW(model.parameters(), lr=seed / 10)
    model(torch.randn(8, 30)).square().mean().backward()
    optimizer.step()
    return model, optimizer


def _state(seed: int, **values: Any) -> dict[str, Any]:
    model, optimizer = _trained(seed)
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), **values}


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, torch.Tensor | np.ndarray):
        return type(one) is type(other) and one.dtype == other.dtype and (one == other).all().item()
    return type(one) is type(other) and one == other


_VALUES: dict[str, Any] = {
    "step": 7,
    "big": 2**70,
    "infinite": float("inf"),
    "pair": (1, "two"),
    "text": "lone \u2026 text",
    "raw": b"\x00\xff",
    "numbers": np.arange(4, dtype=np.int16),
    "nothing": None,
    "empty": {},
}
_BLANK: dict[str, Any] = {name: value if name == "empty" else 0 for name, value in _VALUES.items()}


def test_everything_comes_back_and_is_a_checkpoint_of_strata(tmp_path: Path) -> None:
    saved = _state(1, **_VALUES, half=torch.ones(3, dtype=torch.bfloat16), scalar=torch.tensor(3.5))
    dcp.save(saved, storage_writer=StrataWriter(tmp_path, 10, epoch=2, metadata={"loss": 0.5}))
    found = _state(2, **_BLANK, half=torch.zeros(3, dtype=torch.bfloat16), scalar=torch.tensor(0.0))
    dcp.load(found, storage_reader=StrataReader(tmp_path))
    assert _same(saved, found)
    with CheckpointManager(tmp_path) as manager:
        (info,) = manager.list()
        assert (info.step, info.epoch, info.metadata["loss"]) == (10, 2, 0.5)
        assert manager.verify(10).verified


def test_an_asynchronous_save_keeps_what_the_state_was(tmp_path: Path) -> None:
    """Twice, so that the second one uses the memory of the first."""
    state = _state(1)
    for step in (1, 2):
        weights = state["model"]["0.weight"]
        before = weights.clone()
        pending = dcp.async_save(state, storage_writer=StrataWriter(tmp_path, step))
        weights.add_(1.0)
        pending.result()
        found = _state(2)
        dcp.load(found, storage_reader=StrataReader(tmp_path, step))
        assert torch.equal(found["model"]["0.weight"], before)


def test_a_flipped_bit_is_named(tmp_path: Path) -> None:
    dcp.save(_state(1), storage_writer=StrataWriter(tmp_path, 3))
    path = next(tmp_path.rglob("*.safetensors"))
    data = bytearray(path.read_bytes())
    data[-9] ^= 4
    path.write_bytes(data)
    with pytest.raises(dcp.CheckpointException, match=rf"step 3, rank 0, chunk 0 .*{path} does not match its hash"):
        dcp.load(_state(2), storage_reader=StrataReader(tmp_path, 3))


class _Evil:
    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('a pickle was loaded')",)


def test_what_only_a_pickle_could_hold_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(dcp.CheckpointException, match=r"state\['deep.thing'\] is a .*_Evil, which cannot be stored"):
        dcp.save({"deep": {"thing": _Evil()}}, storage_writer=StrataWriter(tmp_path, 1))
    assert StrataReader(tmp_path).step is None
    evil = pickle.dumps(_Evil())
    dcp.save({"bytes": evil}, storage_writer=StrataWriter(tmp_path, 2))
    found = {"bytes": b""}
    dcp.load(found, storage_reader=StrataReader(tmp_path, 2))
    assert found == {"bytes": evil}


class _OwnPlanner(dcp.DefaultSavePlanner):  # type: ignore[misc]  # torch is not installed where types are checked
    """Turns every number into twice as much before it is written."""

    def transform_object(self, write_item: Any, object: Any) -> Any:  # noqa: A002  # torch's name
        if not isinstance(object, torch.Tensor):
            target = io.BytesIO()
            torch.save(object * 2, target)
            return target
        return super().transform_object(write_item, object)


def test_planners_of_others_are_obeyed(tmp_path: Path) -> None:
    dcp.save({"n": 4}, storage_writer=StrataWriter(tmp_path, 1), planner=_OwnPlanner())
    found = {"n": 0}
    dcp.load(found, storage_reader=StrataReader(tmp_path, 1))
    assert found == {"n": 8}


def test_a_plan_that_the_planner_keeps_serves_every_step(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        state = _state(step, step=step)
        planner = dcp.DefaultSavePlanner(enable_plan_caching=True)
        dcp.save(state, storage_writer=StrataWriter(tmp_path, step, keep_count=2), planner=planner)
    for step in (2, 3):
        found = _state(9, step=0)
        dcp.load(found, storage_reader=StrataReader(tmp_path, step))
        assert _same(found, _state(step, step=step))
    with CheckpointManager(tmp_path) as manager:
        assert [info.step for info in manager.list()] == [3, 2]


def test_the_number_at_the_end_of_a_checkpoint_id_is_the_step(tmp_path: Path) -> None:
    """As torchtitan names its folders."""
    dcp.save({"a": torch.ones(2)}, storage_writer=StrataWriter(tmp_path), checkpoint_id="outputs/checkpoint/step-40")
    assert StrataReader(tmp_path).step == 40
    found = {"a": torch.zeros(2)}
    dcp.load(found, storage_reader=StrataReader(tmp_path), checkpoint_id="outputs/checkpoint/step-40")
    assert found["a"].tolist() == [1, 1]
    with pytest.raises(dcp.CheckpointException, match="no step is known"):
        dcp.save({"a": 1}, storage_writer=StrataWriter(tmp_path))


def test_a_committed_step_is_replaced_only_on_demand(tmp_path: Path) -> None:
    dcp.save({"a": 1}, storage_writer=StrataWriter(tmp_path, 1))
    with pytest.raises(dcp.CheckpointException, match="step 1 is committed already"):
        dcp.save({"a": 2}, storage_writer=StrataWriter(tmp_path, 1))
    dcp.save({"a": 3}, storage_writer=StrataWriter(tmp_path, 1, overwrite=True))
    found = {"a": 0}
    dcp.load(found, storage_reader=StrataReader(tmp_path, 1))
    assert found == {"a": 3}


def test_a_checkpoint_of_another_kind_and_none_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(dcp.CheckpointException, match="no checkpoint in"):
        dcp.load({"a": 0}, storage_reader=StrataReader(tmp_path))
    with CheckpointManager(tmp_path) as manager:
        manager.save({"a": np.ones(2)}, 1)
    with pytest.raises(dcp.CheckpointException, match="was not saved by StrataWriter"):
        dcp.load({"a": 0}, storage_reader=StrataReader(tmp_path))


def test_columns_rows_and_other_types_are_cut_out_of_what_was_saved(tmp_path: Path) -> None:
    """A tensor to fill may be of another element type, and not contiguous."""
    whole = torch.arange(24.0).reshape(4, 6)
    dcp.save({"w": whole}, storage_writer=StrataWriter(tmp_path, 1))
    turned = torch.zeros(6, 4, dtype=torch.float64).T
    found = {"w": turned}
    dcp.load(found, storage_reader=StrataReader(tmp_path, 1))
    assert torch.equal(turned, whole.double())


def test_a_bucket_holds_them_too() -> None:
    server = seaweed()
    server.make_bucket("dcp")
    state = _state(1, step=5)
    dcp.save(state, storage_writer=StrataWriter("s3://dcp/run", 5, overwrite=True, storage=server.options()))
    found = _state(2, step=0)
    dcp.load(found, storage_reader=StrataReader("s3://dcp/run", storage=server.options()))
    assert _same(state, found)
