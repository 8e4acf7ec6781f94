"""Weights of other tools, read without running what they hold; and torch's own objects filled from a checkpoint."""

import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest

from strata.checkpoint import CheckpointManager
from strata.errors import CorruptCheckpoint, UnsupportedState
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


def _dcp_folder(path: Path, **more: Any) -> Any:
    """As `dcp.save` writes it: the model's state."""
    from torch.distributed.checkpoint import FileSystemWriter, save

    model = _model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is one process only
        save({"model": model.state_dict(), "step": 7, **more}, storage_writer=FileSystemWriter(path))
    return model


def test_a_folder_of_dcp(tmp_path: Path) -> None:
    model = _dcp_folder(tmp_path / "dcp", lr=[0.1, torch.ones(2)])
    found = read_weights(tmp_path / "dcp")
    _assert_alike(found["model"], model.state_dict())
    assert (found["step"], found["lr"][0], found["lr"][1].tolist()) == (7, 0.1, [1.0, 1.0])


def test_a_trap_in_the_description_of_dcp_is_not_sprung(tmp_path: Path) -> None:
    (tmp_path / ".metadata").write_bytes(pickle.dumps({"state": Trap(tmp_path / "sprung")}))
    with pytest.raises(UnsupportedState, match=r"posix.mkdir is no part of a description of weights"):
        read_weights(tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_a_trap_among_the_values_of_dcp_is_not_sprung(tmp_path: Path) -> None:
    _dcp_folder(tmp_path / "dcp", trap=Trap(tmp_path / "sprung"))
    with pytest.raises(UnsupportedState, match=r"trap in __0_0.distcp is more than weights"):
        read_weights(tmp_path / "dcp")
    assert not (tmp_path / "sprung").exists()


def test_a_folder_of_dcp_without_one_of_its_files_is_named(tmp_path: Path) -> None:
    _dcp_folder(tmp_path / "dcp")
    next((tmp_path / "dcp").glob("*.distcp")).unlink()
    with pytest.raises(CorruptCheckpoint, match=r"there is no .*distcp"):
        read_weights(tmp_path / "dcp")


def test_a_description_that_is_no_pickle_is_refused(tmp_path: Path) -> None:
    for data in (b"no pickle", pickle.dumps({"a": 1}), b""):
        (tmp_path / ".metadata").write_bytes(data)
        with pytest.raises(UnsupportedState, match="description of DCP"):
            read_weights(tmp_path)


def test_bfloat16_goes_out_and_comes_back(tmp_path: Path) -> None:
    model = _model().to(torch.bfloat16)
    with CheckpointManager(tmp_path / "run") as checkpoints:
        checkpoints.save({"model": model.state_dict()}, 1)
        checkpoints.export(tmp_path / "hf")
    _assert_alike(read_weights(tmp_path / "hf"), model.state_dict())
