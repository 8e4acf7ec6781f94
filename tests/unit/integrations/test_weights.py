"""Weights of other tools, read without running what they hold; and torch's own objects filled from a checkpoint."""

import os
from pathlib import Path
from typing import Any

import pytest

from strata.checkpoint import CheckpointManager
from strata.errors import UnsupportedState
from strata.integrations.weights import read_weights

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class Trap:
    """Runs a command when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.file),)


def _model() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))


def _trained() -> tuple[Any, Any]:
    model = _model()
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
    return model, optimizer


def _assert_alike(one: Any, other: Any) -> None:
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_file_of_torch_save(tmp_path: Path) -> None:
    model, optimizer = _trained()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, tmp_path / "old.pt")
    with CheckpointManager(tmp_path / "run") as checkpoints:
        checkpoints.save(read_weights(tmp_path / "old.pt"), 0)
        fresh = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
        optimizer_too = torch.optim.AdamW(fresh.parameters())
        checkpoints.load(into=fresh)
        checkpoints.load(into=optimizer_too)
    _assert_alike(fresh.state_dict(), model.state_dict())
    _assert_alike(optimizer_too.state_dict()["state"][0], optimizer.state_dict()["state"][0])


def test_a_trap_in_a_file_of_torch_save_is_not_sprung(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2), "trap": Trap(tmp_path / "sprung")}, tmp_path / "bad.pt")
    with pytest.raises(UnsupportedState, match="holds more than weights"):
        read_weights(tmp_path / "bad.pt")
    assert not (tmp_path / "sprung").exists()


def test_a_folder_of_dcp_is_refused_with_advice(tmp_path: Path) -> None:
    (tmp_path / ".metadata").write_bytes(b"a pickle")
    with pytest.raises(UnsupportedState, match="whose description is a pickle"):
        read_weights(tmp_path)


def test_bfloat16_goes_out_and_comes_back(tmp_path: Path) -> None:
    model = _model().to(torch.bfloat16)
    with CheckpointManager(tmp_path / "run") as checkpoints:
        checkpoints.save({"model": model.state_dict()}, 1)
        checkpoints.export(tmp_path / "hf")
    _assert_alike(read_weights(tmp_path / "hf"), model.state_dict())
