"""Weights that other tools have saved: torch.save, DCP and safetensors. Nothing that is loaded here can run code."""

from pathlib import Path
from typing import Any

from strata.checkpoint.export import INDEX, read_safetensors
from strata.errors import CheckpointNotFound, MissingExtra, UnsupportedState

__all__ = ["read_weights"]


def read_weights(path: str | Path) -> Any:
    """What the file or folder holds: a dict of tensors, nested as it was saved. Raises UnsupportedState for what only a
    pickle could hold."""
    path = Path(path)
    if not path.exists():
        raise CheckpointNotFound(f"there is no {path}")
    if (path / ".metadata").is_file():
        from strata.integrations.dcp_folder import read_dcp_folder  # only where torch is

        return read_dcp_folder(path)
    if path.is_dir() or path.suffix == ".safetensors" or path.name == INDEX:
        return read_safetensors(path.parent if path.name == INDEX else path)
    return _read_torch(path)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("torch", "torch") from error
    return torch


def _read_torch(path: Path) -> Any:
    torch = _torch()
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (torch.serialization.pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).partition("\n")[0]
        raise UnsupportedState(
            f"{path} holds more than weights, or is no file of torch.save: {reason[:300]}",
            hint="Save model.state_dict() instead of the model, or convert the file where you trust it.",
        ) from None
