"""torch's tensors as bytes and back. Only this file of the package knows torch, and it never imports torch by itself.

A DTensor (FSDP, tensor parallelism) is saved as its local part and the place of that part in the whole.
"""

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from strata.errors import MissingExtra, UnsupportedState

__all__ = [
    "as_bytes",
    "copy_into",
    "dtype_name",
    "fillable",
    "is_spread",
    "is_tensor",
    "part_of",
    "placed_like",
    "plan_part",
    "restore",
    "version",
    "written_by",
]


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def part_of(key: str, value: Any) -> tuple[Any, tuple[int, ...] | None]:
    """What this process holds of a tensor: all of it, or a block and where in the whole it begins. Raises
    UnsupportedState for one that is not dense."""
    torch = sys.modules["torch"]
    spread = hasattr(value, "to_local") or hasattr(value, "local_shards")  # a DTensor, or its forerunner ShardedTensor
    part, offset = _distributed_part(key, value) if spread else (value, None)
    tensor = part.detach()
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type == "meta":
        raise UnsupportedState(f"{key} is a {tensor.layout} tensor on {tensor.device}; only dense ones can be stored")
    return tensor.resolve_conj().resolve_neg(), offset


def _distributed_part(key: str, value: Any) -> tuple[Any, tuple[int, ...] | None]:
    """A DTensor's local shard. Whoever holds all of it saves it as an ordinary tensor."""
    placements = getattr(value, "placements", None)
    kinds = [type(placement).__name__ for placement in placements or ()]
    if placements is None or not set(kinds) <= {"Shard", "Replicate"}:
        raise UnsupportedState(
            f"{key} is a {type(value).__qualname__} placed as {kinds or '?'}; only Shard and Replicate can be stored",
            hint="Save its part as Sharded(tensor.to_local(), global_shape, global_offset).",
        )
    local = value.to_local()
    if set(kinds) <= {"Replicate"}:
        return local, None
    coordinate = value.device_mesh.get_coordinate()
    if coordinate is None:
        raise UnsupportedState(f"{key} lies on a mesh that this process is no part of")
    cuts = [placement.dim if kind == "Shard" else None for placement, kind in zip(placements, kinds, strict=True)]
    shape, offset = plan_part(tuple(value.shape), tuple(value.device_mesh.shape), coordinate, cuts)
    if shape != tuple(local.shape):
        raise UnsupportedState(f"{key}: its local part has shape {tuple(local.shape)}, its placement says {shape}")
    return local, offset


def plan_part(
    whole: Sequence[int], mesh: Sequence[int], coordinate: Sequence[int], cuts: Sequence[int | None]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and offset of one process's part: each axis of the mesh cuts what the one before it left, in pieces of
    equal size but for the last ones, which are shorter or empty (as torch.chunk does)."""
    shape, offset = list(whole), [0] * len(whole)
    for size, place, axis in zip(mesh, coordinate, cuts, strict=True):
        if axis is None:
            continue
        piece = -(-shape[axis] // size)
        start = min(place * piece, shape[axis])
        offset[axis] += start
        shape[axis] = min(piece, shape[axis] - start)
    return tuple(shape), tuple(offset)


def is_spread(value: Any) -> bool:
    """Whether this process holds only a block of it."""
    return is_tensor(value) and any(type(each).__name__ == "Shard" for each in getattr(value, "placements", ()))


def placed_like(target: Any, value: Any) -> Any:
    """What was loaded as a DTensor like the one it is loaded for; what has not its shape (Adam's step) stays as it
    is."""
    if not (is_spread(target) and is_tensor(value)):
        return value
    local, offset = part_of("", target)
    if value.shape == target.shape and offset is not None:  # it was whole when it was saved
        value = value[tuple(slice(at, at + size) for at, size in zip(offset, local.shape, strict=True))]
    if value.shape != local.shape:
        return value
    return type(target).from_local(
        value.to(target.device),
        target.device_mesh,
        target.placements,
        run_check=False,
        shape=target.shape,
        stride=target.stride(),
    )


def dtype_name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def as_bytes(tensor: Any) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """In C order, the tensor's own memory where it is so already."""
    torch = sys.modules["torch"]
    flat = tensor.cpu().contiguous().reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    found: np.ndarray[Any, np.dtype[np.uint8]] = flat.view(torch.uint8).numpy()
    return found


def copy_into(tensor: Any, target: memoryview) -> None:
    """One copy, from a device too."""
    if tensor.device.type == "cpu":
        np.copyto(np.frombuffer(target, dtype=np.uint8), as_bytes(tensor))
        return
    torch = sys.modules["torch"]
    torch.frombuffer(target, dtype=torch.uint8).copy_(tensor.contiguous().reshape(-1).view(torch.uint8))


def version(tensor: Any) -> int:
    """Goes up with every write in place that torch sees: not with one through `.data` or a NumPy view."""
    return int(tensor._version)


def written_by(optimizer: Any) -> set[int]:
    """The addresses of the tensors that an optimizer's step writes to: its parameters, and what it keeps of each."""
    found = [each for group in optimizer.param_groups for each in group["params"]]
    found += [each for kept in optimizer.state.values() for each in kept.values() if is_tensor(each)]
    return {part_of("", each)[0].data_ptr() for each in found}


def fillable(tensor: Any) -> bool:
    """Whether a load can write straight into its memory."""
    return bool(tensor.is_contiguous() and tensor.device.type == "cpu")


def restore(name: str, shape: Sequence[int], data: "np.ndarray[Any, np.dtype[np.uint8]]") -> Any:
    """A tensor of the type `name` over the memory of `data`."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise MissingExtra("torch", "torch") from error
    dtype = getattr(torch, name)
    if not len(data):  # numpy gives an empty array the stride 0, which torch will not view as another type
        return torch.empty(tuple(shape), dtype=dtype)
    return torch.from_numpy(data).view(dtype).reshape(tuple(shape))
