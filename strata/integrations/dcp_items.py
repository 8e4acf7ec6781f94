"""What DCP's plans ask for, as a state of Strata's checkpoints and back: tensors with their place in the whole, values
as JSON, and DCP's metadata out of the ranks' manifests.
"""

import io
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from torch.distributed.checkpoint.planner import LoadItemType, WriteItemType

from strata.checkpoint import tensors
from strata.checkpoint.arrays import Arena, Sharded, itemsize, type_name
from strata.checkpoint.manifest import CommitManifest, TensorRecord
from strata.checkpoint.reader import CheckpointReader, Run
from strata.checkpoint.slices import Block, Piece, plan_pieces
from strata.errors import InvalidArgument

__all__ = ["Contents", "as_state", "as_tree"]


def as_state(plan: Any, planner: Any) -> dict[str, Any]:
    """What this rank writes, by name: whole tensors, parts with their place, and values."""
    return {key: _value_of(item, planner) for key, item in _keys(plan).items()}


def as_tree(tree: Any, plan: Any) -> Any:
    """The rank's tree: its state, which name a part belongs to, and the path of each name in the nested state."""
    keys = _keys(plan)
    paths = plan.planner_data if isinstance(plan.planner_data, dict) else {}
    return {
        "state": tree,
        "parts": {key: item.index.fqn for key, item in keys.items() if key != item.index.fqn},
        "paths": {
            item.index.fqn: list(paths[item.index.fqn]) for item in keys.values() if _is_path(paths.get(item.index.fqn))
        },
    }


def _is_path(path: Any) -> bool:
    return isinstance(path, tuple) and all(type(step) in (str, int) for step in path)


def _keys(plan: Any) -> dict[str, Any]:
    """A rank may hold several parts of one tensor: the later ones are named with their offset."""
    found: dict[str, Any] = {}
    for item in plan.items:
        name = item.index.fqn
        found[name if name not in found else f"{name}@{','.join(map(str, item.index.offset))}"] = item
    return found


def _value_of(item: Any, planner: Any) -> Any:
    if item.type is WriteItemType.BYTE_IO:
        if type(planner).transform_object is DefaultSavePlanner.transform_object:
            return planner.lookup_object(item.index)
        # Another planner's bytes, which this process has just made: only to be seen as values again.
        data = planner.resolve_data(item)
        data.seek(0)
        return torch.load(data, weights_only=True)
    tensor = planner.resolve_data(item).detach()
    if item.type is WriteItemType.TENSOR:
        return tensor
    return Sharded(tensor, tuple(item.tensor_data.size), tuple(item.tensor_data.chunk.offsets))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where something lies: whose object, and what the rank's tree says about it."""

    rank: int
    node: Any
    record: TensorRecord | None = None  # of a tensor


class Contents:
    """A committed checkpoint as DCP sees it."""

    def __init__(self, reader: CheckpointReader, commit: CommitManifest) -> None:
        self.commit = commit
        self._reader = reader
        self._places: dict[Any, _Place] = {}
        described: dict[str, Any] = {}
        paths: dict[str, tuple[Any, ...]] = {}
        for manifest in reader.manifests():
            tree = manifest.tree
            paths |= {name: tuple(path) for name, path in tree["paths"].items()}
            for key, node in tree["state"].items():
                self._add(described, manifest.rank, tree["parts"].get(key, key), node)
        self.metadata = Metadata(state_dict_metadata=described, planner_data=paths or None)

    def read(self, plan: Any, planner: Any) -> None:
        """Fills the tensors that the planner names, straight from the store where their memory allows it."""
        arena = Arena()
        wanted: list[Run] = []
        ends: list[Callable[[], None]] = []
        for item in plan.items:
            place = self._places[item.storage_index]
            plan_item = self._value if item.type is LoadItemType.BYTE_IO else self._tensor
            ends.append(plan_item(item, place, planner, arena, wanted))
        self._reader.fill(wanted)
        for end in ends:
            end()

    def _add(self, described: dict[str, Any], rank: int, name: str, node: Any) -> None:
        if not (isinstance(node, dict) and node.get("kind") == "torch"):
            described.setdefault(name, BytesStorageMetadata())
            self._places.setdefault(MetadataIndex(name), _Place(rank=rank, node=node))
            return
        record = _placed(self._reader.manifest(rank).tensors[node["$array"]])
        assert record.global_shape is not None
        offset = torch.Size(record.global_offset)
        if name not in described:
            properties = TensorProperties(dtype=getattr(torch, type_name(record.dtype)))
            described[name] = TensorStorageMetadata(properties, torch.Size(record.global_shape), [])
        described[name].chunks.append(ChunkStorageMetadata(offset, torch.Size(record.shape)))
        self._places[MetadataIndex(name, offset)] = _Place(rank=rank, node=node, record=record)

    def _tensor(self, item: Any, place: _Place, planner: Any, arena: Arena, wanted: list[Run]) -> Callable[[], None]:
        target = planner.resolve_tensor(item).detach()
        record = place.record
        if record is None or record.global_offset is None:
            raise InvalidArgument(f"{item.storage_index.fqn} was saved as a value and is no tensor")
        if target.size() != item.lengths:
            raise InvalidArgument(f"{item.storage_index.fqn}: {item.lengths} were asked for {target.size()}")
        begin = zip(record.global_offset, item.storage_offsets, strict=True)
        box = Block(offset=tuple(a + b for a, b in begin), shape=tuple(item.lengths))
        pieces = list(plan_pieces(item.storage_index.fqn, box, [(place.rank, record)]))
        name = type_name(record.dtype)
        kept = part = target
        if len(pieces) > 1:  # rows of a part: its chunks are read whole anyway, and one copy is cheaper than many runs
            part = tensors.restore(name, record.shape, arena.take(record.nbytes))
            kept = part[tuple(slice(at, at + n) for at, n in zip(item.storage_offsets, item.lengths, strict=True))]
            pieces = [Piece(rank=place.rank, source=record.offset, target=0, nbytes=record.nbytes)]
        elif tensors.dtype_name(target) != name or not tensors.fillable(target):
            kept = part = tensors.restore(name, box.shape, arena.take(itemsize(record.dtype) * math.prod(box.shape)))
        if part.numel():
            wanted.append((tensors.as_bytes(part).data, pieces))

        def end() -> None:
            if kept is not target:
                target.copy_(kept)
            planner.commit_tensor(item, target)

        return end

    def _value(self, item: Any, place: _Place, planner: Any, arena: Arena, wanted: list[Run]) -> Callable[[], None]:
        """The planner takes a torch.save of it, so one is made here: no pickle comes out of the store."""
        value = self._reader.plan_value(place.rank, place.node, wanted)

        def end() -> None:
            parcel = io.BytesIO()
            torch.save(value(), parcel)
            parcel.seek(0)
            planner.load_bytes(item, parcel)

        return end


def _placed(record: TensorRecord) -> TensorRecord:
    """A whole tensor is its own only part."""
    if record.global_shape is not None:
        return record
    return replace(record, global_shape=record.shape, global_offset=(0,) * len(record.shape))
