"""A checkpoint's model as a Hugging Face folder: sharded safetensors and their index, which need nothing of Strata;
and a model from such a folder or file.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from strata.checkpoint.arrays import itemsize, restore
from strata.checkpoint.image import plan_image
from strata.checkpoint.reader import CheckpointReader
from strata.errors import CheckpointNotFound, CorruptCheckpoint, InvalidArgument
from strata.storage.base import ObjectStore

__all__ = ["Exported", "export_folder", "read_safetensors"]

INDEX = "model.safetensors.index.json"
_SHARD_BYTES = 5_000_000_000
_MAX_HEADER = 100_000_000
_PLACES = ("parts/model", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written: the arrays' names without `part`, the place that they had in the checkpoint."""

    part: str
    names: tuple[str, ...]
    files: tuple[str, ...]
    num_bytes: int


def export_folder(
    reader: CheckpointReader, target: ObjectStore, *, part: str | None = None, shard_bytes: int = _SHARD_BYTES
) -> Exported:
    """Writes the arrays below `part` (by default the model's), each file of at most `shard_bytes` if its arrays allow
    it. Every byte is checked against its hash on the way; one file's arrays are in memory at a time."""
    if shard_bytes < 1:
        raise InvalidArgument(f"a file cannot have {shard_bytes} bytes")
    sizes = reader.whole_sizes()
    part = _place(sizes) if part is None else part.strip("/")
    prefix = f"{part}/" if part else ""
    chosen = {name: size for name, size in sizes.items() if name.startswith(prefix)}
    if not chosen:
        known = sorted({name.partition("/")[0] for name in sizes})
        raise CheckpointNotFound(f"the checkpoint has no arrays below {part!r}", hint=f"It has: {', '.join(known)}.")
    shards = list(_shards(chosen, shard_bytes))
    files = [_file_name(number, len(shards)) for number in range(len(shards))]
    weight_map: dict[str, str] = {}
    for file, names in zip(files, shards, strict=True):
        arrays = {name.removeprefix(prefix): array for name, array in reader.whole(names).items()}
        image = plan_image(arrays, {"format": "pt"})
        target.put_stream(file, image.views(), size=image.size)
        weight_map |= dict.fromkeys(sorted(arrays), file)
    if len(files) > 1:
        index = {"metadata": {"total_size": sum(chosen.values())}, "weight_map": weight_map}
        target.put(INDEX, json.dumps(index, indent=2).encode())
    return Exported(part=part, names=tuple(weight_map), files=tuple(files), num_bytes=sum(chosen.values()))


def _place(sizes: Mapping[str, int]) -> str:
    return next((place for place in _PLACES if any(name.startswith(f"{place}/") for name in sizes)), "")


def _shards(sizes: Mapping[str, int], limit: int) -> Iterator[list[str]]:
    names: list[str] = []
    filled = 0
    for name, size in sizes.items():
        if names and filled + size > limit:
            yield names
            names, filled = [], 0
        names.append(name)
        filled += size
    yield names


def _file_name(number: int, count: int) -> str:
    return "model.safetensors" if count == 1 else f"model-{number + 1:05d}-of-{count:05d}.safetensors"


def read_safetensors(path: Path) -> dict[str, Any]:
    """The arrays of a safetensors file, or of a folder of them: torch's tensors if torch is installed, else NumPy's."""
    if path.is_file():
        return _read_file(path)
    files = sorted(path.glob("*.safetensors"))
    if (index := path / INDEX).is_file():
        files = sorted({path / Path(name).name for name in json.loads(index.read_text())["weight_map"].values()})
    if not files:
        raise CheckpointNotFound(f"{path} has no safetensors file")
    arrays: dict[str, Any] = {}
    for file in files:
        arrays |= _read_file(file)
    return arrays


def _read_file(path: Path) -> dict[str, Any]:
    kind = "numpy" if find_spec("torch") is None else "torch"
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _MAX_HEADER:
                raise ValueError("its header is too long")
            header = json.loads(file.read(length))
            header.pop("__metadata__", None)
            data = np.fromfile(file, dtype=np.uint8)
        return {name: _array(kind, entry, data) for name, entry in header.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorruptCheckpoint(f"{path} cannot be read as safetensors: {error}") from None


def _array(kind: str, entry: Mapping[str, Any], data: "np.ndarray[Any, np.dtype[np.uint8]]") -> Any:
    begin, end = entry["data_offsets"]
    if not 0 <= begin <= end <= len(data) or end - begin != math.prod(entry["shape"]) * itemsize(entry["dtype"]):
        raise ValueError("an array has other bytes than its shape says")
    return restore(kind, entry["dtype"], entry["shape"], data[begin:end].copy())
