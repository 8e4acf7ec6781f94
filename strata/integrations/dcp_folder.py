"""A folder that torch.distributed.checkpoint has written, read without running what is in it.

Its description, `.metadata`, is a pickle. It is read with records of ours in the place of torch's classes, and any
other name in it ends the reading: a pickle can call nothing but what it is given.
"""

import io
import math
import pickle  # only the restricted reader below
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from strata.errors import CorruptCheckpoint, MissingExtra, UnsupportedState

try:
    import torch
except ImportError as error:
    raise MissingExtra("torch", "torch") from error

__all__ = ["METADATA", "read_dcp_folder"]

METADATA = ".metadata"
_CHECKPOINT = "torch.distributed.checkpoint"
_RECORDS = {
    (f"{_CHECKPOINT}.metadata", name)
    for name in (
        "BytesStorageMetadata",
        "ChunkStorageMetadata",
        "Metadata",
        "MetadataIndex",
        "StorageMeta",
        "TensorProperties",
        "TensorStorageMetadata",
        "_MEM_FORMAT_ENCODING",
    )
} | {
    (f"{_CHECKPOINT}.filesystem", "_StorageInfo"),
    ("torch.serialization", "_get_layout"),
    ("pathlib", "PosixPath"),
    ("pathlib", "WindowsPath"),
}
_BUILTIN = {("torch", "Size"): tuple, ("collections", "OrderedDict"): dict}


def read_dcp_folder(folder: Path) -> dict[str, Any]:
    """All tensors and plain values, nested as they were saved. Every tensor is put together from the ranks' chunks."""
    described = _described(folder / METADATA)
    try:
        return _read(folder, described)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise UnsupportedState(f"{folder / METADATA} is not as DCP writes it: {error!r}") from None


def _read(folder: Path, described: dict[str, Any]) -> dict[str, Any]:
    names: dict[str, Any] = described["state_dict_metadata"]
    stored: dict[str, list[_Stored]] = {}
    for index, info in (described.get("storage_data") or {}).items():
        stored.setdefault(index.fields["fqn"], []).append(_Stored.of(folder, index.fields, info.fields))
    paths = described.get("planner_data") or {}
    tree: dict[Any, Any] = {}
    for name, entry in names.items():
        found = stored.get(name, [])
        value = _tensor(name, entry.fields, found) if entry.kind == "TensorStorageMetadata" else _value(name, found)
        _put(tree, paths.get(name, (name,)), value)
    return {key: _lists(item) for key, item in tree.items()}


class _Record:
    """Stands for an object of the pickle: its class by name, its state as data."""

    kind = ""

    def __init__(self, *given: Any) -> None:
        self.given = given
        self.fields: dict[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        self.fields = state if isinstance(state, dict) else {"state": state}


class _Reader(pickle.Unpickler):
    """Knows the names of torch's description, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _RECORDS:
            return type(name, (_Record,), {"kind": name})
        if (module, name) in _BUILTIN:
            return _BUILTIN[module, name]
        if module == "torch" and isinstance(found := getattr(torch, name, None), torch.dtype):
            return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a description of weights")


def _described(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            found = _Reader(file).load()
    except Exception as error:  # a broken pickle raises anything
        raise UnsupportedState(
            f"{path} is no description of DCP that can be read safely: {str(error)[:300]}",
            hint="Load it with torch.distributed.checkpoint into your model where you trust it, and save that.",
        ) from None
    if getattr(found, "kind", "") != "Metadata" or not isinstance(found.fields.get("state_dict_metadata"), dict):
        raise UnsupportedState(f"{path} holds no description of DCP")
    fields: dict[str, Any] = found.fields
    return fields


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored:
    """Some bytes of a file: a chunk of a tensor, or a value."""

    path: Path
    start: int
    length: int
    offset: tuple[int, ...]

    @classmethod
    def of(cls, folder: Path, index: dict[str, Any], info: dict[str, Any]) -> "_Stored":
        name = PurePosixPath(info["relative_path"])
        if info.get("transform_descriptors"):
            raise UnsupportedState(f"{index['fqn']} is stored with DCP's extensions {info['transform_descriptors']}")
        if name.is_absolute() or ".." in name.parts:
            raise UnsupportedState(f"{index['fqn']} is said to lie outside of the folder, in {name}")
        offset = tuple(index.get("offset") or ())
        return cls(path=folder / name, start=info["offset"], length=info["length"], offset=offset)

    def load(self, name: str) -> Any:
        try:
            with self.path.open("rb") as file:
                file.seek(self.start)
                data = file.read(self.length)
            return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        except FileNotFoundError:
            raise CorruptCheckpoint(f"{name}: there is no {self.path}") from None
        except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
            reason = str(error).partition("\n")[0]
            raise UnsupportedState(
                f"{name} in {self.path.name} is more than weights, or damaged: {reason[:300]}",
                hint="Load it with torch.distributed.checkpoint where you trust it, and save the weights alone.",
            ) from None


def _value(name: str, stored: list[_Stored]) -> Any:
    if not stored:
        raise CorruptCheckpoint(f"{name} is described, and stored nowhere")
    return stored[0].load(name)


def _tensor(name: str, fields: dict[str, Any], stored: list[_Stored]) -> Any:
    size = tuple(fields["size"])
    whole = torch.empty(size, dtype=fields["properties"].fields["state"][0])
    filled = 0
    for one in stored:
        chunk = one.load(name)
        offset = one.offset or (0,) * len(size)
        places = tuple(slice(at, at + n) for at, n in zip(offset, chunk.shape, strict=True))
        target = whole[places]
        if chunk.dtype != whole.dtype or target.shape != chunk.shape:
            raise CorruptCheckpoint(f"{name}: a chunk of {tuple(chunk.shape)} at {offset} is no part of {size}")
        target.copy_(chunk)
        filled += chunk.numel()
    if filled != math.prod(size):
        raise CorruptCheckpoint(f"{name}: {filled} of {math.prod(size)} elements are stored")
    return whole


def _put(tree: dict[Any, Any], path: Any, value: Any) -> None:
    *above, last = path
    for key in above:
        tree = tree.setdefault(key, {})
    tree[last] = value


def _lists(node: Any) -> Any:
    """DCP counts the items of lists by numbers; keys of dicts are strings there."""
    if not isinstance(node, dict):
        return node
    items = {key: _lists(item) for key, item in node.items()}
    if items and all(type(key) is int for key in items) and sorted(items) == list(range(len(items))):
        return [items[key] for key in sorted(items)]
    return items
