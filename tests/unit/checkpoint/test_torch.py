"""torch tensors in and out, without pickle: every type, devices' layouts, tied weights, a real optimizer."""

from pathlib import Path
from typing import Any

import pytest

from strata.checkpoint import CheckpointManager
from strata.errors import UnsupportedState

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

_TYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
]


@pytest.mark.parametrize("name", _TYPES)
def test_every_type_comes_back_bit_for_bit(tmp_path: Path, name: str) -> None:
    tensor = torch.arange(12).reshape(3, 4).to(getattr(torch, name))
    state = {"t": tensor, "scalar": tensor[0, 1].clone(), "empty": tensor[:0]}
    with CheckpointManager(tmp_path) as manager:
        manager.save_async(state, step=1).result()
        back = manager.load(1)
    for key, saved in state.items():
        assert back[key].dtype == saved.dtype
        assert back[key].shape == saved.shape
        assert bytes(back[key].reshape(-1).untyped_storage()) == bytes(saved.clone().reshape(-1).untyped_storage())


def test_a_model_and_its_optimizer_go_on_exactly(tmp_path: Path) -> None:
    def make() -> tuple[Any, Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        return model, torch.optim.AdamW(model.parameters(), lr=0.01)

    def train(model: Any, optimizer: Any, steps: int) -> None:
        for step in range(steps):
            torch.manual_seed(step)
            optimizer.zero_grad()
            model(torch.randn(4, 8)).square().mean().backward()
            optimizer.step()

    model, optimizer = make()
    train(model, optimizer, 3)
    with CheckpointManager(tmp_path) as manager:
        handle = manager.save_async({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, step=3)
        train(model, optimizer, 2)  # changes the live weights while the save runs
        handle.result()
        state = manager.load()
    resumed, again = make()
    resumed.load_state_dict(state["model"])
    again.load_state_dict(state["optimizer"])
    train(resumed, again, 2)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name])


def test_views_and_transposes_and_gradients(tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    state = {
        "t": base.T,
        "step": base[::2],
        "grad": base.clone().requires_grad_(),
        "conj": torch.ones(2).cfloat().conj(),
    }
    with CheckpointManager(tmp_path) as manager:
        manager.save(state, step=1)
        back = manager.load(1)
    for key, tensor in state.items():
        assert torch.equal(back[key], tensor.detach())


def test_tensors_can_be_filled_in_place(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        manager.save({"w": torch.ones(5, dtype=torch.bfloat16)}, step=1)
        target = torch.zeros(5, dtype=torch.bfloat16)
        manager.load(1, into={"w": target})
    assert torch.equal(target, torch.ones(5, dtype=torch.bfloat16))


def test_what_has_no_plain_bytes_is_refused_by_name(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        for tensor in (torch.eye(3).to_sparse(), torch.empty(2, device="meta")):
            with pytest.raises(UnsupportedState, match="'emb'"):
                manager.save({"emb": tensor}, step=1)
        with pytest.raises(UnsupportedState, match="'dtype'"):
            manager.save({"dtype": torch.float32}, step=1)
    assert list(tmp_path.iterdir()) == []
