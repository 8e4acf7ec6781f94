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
from strata.checkpoint.parcel import pack, unpack

__all__ = ["Elsewhere", "Exchange", "Shared", "alike", "deal", "exchanged", "owners_in", "spread"]


class Exchange(Protocol):
    """The ranks of a job as they talk to each other. Collective: every rank makes the same calls in the same order."""

    def sum(self, values: NDArray[np.float64]) -> NDArray[np.float64]: ...
    def share(self, source: int, takers: Sequence[int], pieces: Sequence[memoryview]) -> memoryview | None:
        """Brings the source's pieces to the takers, which get them as one; None for the others."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shared:
    """An array in a state that is half read: this rank has read it for all."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """An array in a state that is half read: another rank has it."""

    name: str
    rank: int


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
    found: dict[str, int] = {}
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending.extend(node)
        elif isinstance(node, dict):
            if "$array" not in node:
                pending.extend(node.values())
            elif "rank" in node:
                found[node["$array"]] = node["rank"]
    return found


def exchanged(state: Any, rank: int, world_size: int, exchange: Exchange) -> Any:
    """A state that is half read, with what the others have read filled in. Collective."""
    mine: dict[str, Any] = {}
    sources: set[int] = set()
    _survey(state, mine, sources, rank)
    arrived: dict[str, Any] = dict(mine)
    for source in sorted(sources):
        takers = [other for other in range(world_size) if other != source]
        data = exchange.share(source, takers, pack(mine) if source == rank else [])
        if data is not None:
            arrived |= unpack(data)
    return _filled(state, arrived)


def _survey(state: Any, mine: dict[str, Any], sources: set[int], rank: int) -> None:
    if isinstance(state, Shared):
        mine[state.name] = state.value
        sources.add(rank)
    elif isinstance(state, Elsewhere):
        sources.add(state.rank)
    elif isinstance(state, dict):
        for item in state.values():
            _survey(item, mine, sources, rank)
    elif isinstance(state, list | tuple):
        for item in state:
            _survey(item, mine, sources, rank)


def _filled(state: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(state, Shared | Elsewhere):
        return arrays[state.name]
    if isinstance(state, dict):
        return {key: _filled(item, arrays) for key, item in state.items()}
    if type(state) in (list, tuple):
        return type(state)(_filled(item, arrays) for item in state)
    return state
