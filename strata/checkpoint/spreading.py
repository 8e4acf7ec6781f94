"""Arrays that all ranks have alike are written by one rank and read by one. Which ones they are is measured, by their
hashes, at every save; any other array is each rank's own. The shares are balanced by size.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from strata.checkpoint.arrays import ArraySource
from strata.checkpoint.codec import array_nodes, decode
from strata.checkpoint.parcel import pack, unpack

__all__ = ["Exchange", "HalfRead", "alike", "deal", "exchanged", "owners_in", "spread"]


class Exchange(Protocol):
    """The ranks of a job as they talk to each other. Collective: every rank makes the same calls in the same order."""

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def share(self, source: int, takers: Sequence[int], pieces: Sequence[memoryview]) -> memoryview | None:
        """Brings the source's pieces to the takers, which get them as one; None for the others."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HalfRead:
    """A state before its ranks have told each other what they read: `arrays` are this rank's own, and those of the
    common ones that it has read for all. `owners` says which rank has read which of the common ones."""

    tree: Any
    arrays: Mapping[str, Any]
    owners: Mapping[str, int]


def alike(arrays: Mapping[str, ArraySource], rank: int, world_size: int, exchange: Exchange) -> list[str]:
    """The names of the arrays that have the same bytes on all ranks. Collective."""
    mine = {name: _fingerprint(source) for name, source in arrays.items() if source.shard is None}
    told = [memoryview(json.dumps(mine).encode())] if rank == 0 else []
    data = exchange.share(0, range(1, world_size), told)
    first: dict[str, str] = mine if data is None else json.loads(bytes(data))
    votes = exchange.sum(np.array([mine.get(name) == digest for name, digest in first.items()], dtype=np.float64))
    return [name for name, count in zip(first, votes, strict=True) if count == world_size]


def _fingerprint(source: ArraySource) -> str:
    return f"{source.token}{source.shape}{xxhash.xxh3_128_hexdigest(source.view())}"


def deal(sizes: Mapping[str, int], world_size: int) -> dict[str, int]:
    """The rank that writes each: the largest first, each to the rank that has the least. Ranks that are asked with the
    same sizes get the same answer."""
    loads = [0] * world_size
    owners: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        owner = loads.index(min(loads))
        owners[name] = owner
        loads[owner] += sizes[name]
    return owners


def spread(
    tree: Any, arrays: Mapping[str, ArraySource], rank: int, world_size: int, exchange: Exchange
) -> tuple[Any, dict[str, ArraySource]]:
    """An encoded state with the owners of its common arrays noted in the tree, and the arrays that this rank writes.
    Collective."""
    common = alike(arrays, rank, world_size, exchange)
    owners = deal({name: arrays[name].nbytes for name in common}, world_size)
    mine = {name: source for name, source in arrays.items() if owners.get(name, rank) == rank}
    return _noted(tree, owners), mine


def _noted(tree: Any, owners: Mapping[str, int]) -> Any:
    if isinstance(tree, list):
        return [_noted(item, owners) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "$array" in tree:
        owner = owners.get(tree["$array"])
        return tree if owner is None else {**tree, "rank": owner}
    return {key: _noted(item, owners) for key, item in tree.items()}


def owners_in(tree: Any) -> dict[str, int]:
    """The rank that wrote each of the common arrays of a tree."""
    return {node["$array"]: node["rank"] for node in array_nodes(tree) if "rank" in node}


def exchanged(half: HalfRead, rank: int, world_size: int, exchange: Exchange) -> Any:
    """The state, with what the others have read. Collective."""
    mine = {name: half.arrays[name] for name, owner in half.owners.items() if owner == rank}
    arrived: dict[str, Any] = dict(half.arrays)
    for source in sorted(set(half.owners.values())):
        takers = [other for other in range(world_size) if other != source]
        data = exchange.share(source, takers, pack(mine) if source == rank else [])
        if data is not None:
            arrived |= unpack(data)
    return decode(half.tree, arrived)
