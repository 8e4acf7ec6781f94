"""Pytrees of JAX arrays in Strata's checkpoints, over any number of processes: each saves the blocks that are its own,
each restores the blocks that its devices want.

`strata.training(params=params)` takes them as they are. Without it: `checkpoints.save(pack_tree(tree), step)` and
`restore_tree(checkpoints, tree)`, both in every process.
"""

import logging
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from strata.checkpoint import CheckpointManager, Recovery, Sharded
from strata.checkpoint.arrays import itemsize, type_name
from strata.checkpoint.manifest import TensorRecord
from strata.checkpoint.objects import is_stateful
from strata.checkpoint.reader import CheckpointReader, Run
from strata.checkpoint.slices import Block, plan_pieces
from strata.errors import CheckpointNotFound, CorruptCheckpoint, InvalidArgument, MissingExtra, UnsupportedState
from strata.worker.training.trees import ArrayTree

try:
    import jax
    from jax.experimental import multihost_utils
except ImportError as error:
    raise MissingExtra("jax", "jax") from error

__all__ = ["JaxTree", "jax_part", "pack_tree", "restore_tree"]

_log = logging.getLogger(__name__)
_AT = "@"  # between the name of a leaf and the offset of a block


def pack_tree(tree: Any) -> dict[str, Any]:
    """This process's part of a pytree, as a state to save: of every JAX array the blocks that no other process saves,
    and from the first process whatever is no JAX array."""
    state: dict[str, Any] = {}
    for name, leaf in _named(tree).items():
        if isinstance(leaf, jax.Array):
            array = _plain(leaf)
            for shard in array.addressable_shards:
                if shard.replica_id == 0:
                    block = _block(shard.index, array.shape)
                    where = ",".join(map(str, block.offset))
                    state[f"{name}{_AT}{where}"] = Sharded(np.asarray(shard.data), array.shape, block.offset)
        elif jax.process_index() == 0:
            state[name] = leaf
    return state


def restore_tree(checkpoints: CheckpointManager[Any], like: Any, step: int | None = None) -> Recovery | None:
    """A tree like `like` (arrays, or ShapeDtypeStructs with a sharding) out of `step`, or of the newest checkpoint
    whose bytes are good for every process; None when nothing was ever saved. Collective, for any number of processes
    and any sharding."""
    if step is not None:
        return _restored(checkpoints, like, step)
    found = _said_by_first([info.step for info in checkpoints.list()] if jax.process_index() == 0 else [])
    for newest in found:
        failure: CorruptCheckpoint | None = None
        recovery: Recovery | None = None
        try:
            recovery = _restored(checkpoints, like, newest)
        except CorruptCheckpoint as error:
            failure = error
        if _all(failure is None):
            return recovery
        _log.error("%s; falling back to the checkpoint before it", failure or f"another process cannot load {newest}")
    if found:
        raise CorruptCheckpoint(f"no checkpoint in {checkpoints.path} is good for every process")
    return None


def _restored(checkpoints: CheckpointManager[Any], like: Any, step: int) -> Recovery:
    info = checkpoints.show(step)
    saved = _Saved(checkpoints.open(step), step)
    leaves = {name: saved.want(name, leaf) for name, leaf in _named(like).items()}
    saved.fill()
    structure = jax.tree_util.tree_structure(like)
    state = jax.tree_util.tree_unflatten(structure, [make() for make in leaves.values()])
    rank = jax.process_index() % saved.world_size
    return Recovery(info=info, state=state, data_state=saved.data_state(rank), world_size=saved.world_size)


class _Saved:
    """One checkpoint: which process saved which block of which leaf, and the memory that is to be filled from it."""

    def __init__(self, reader: CheckpointReader, step: int) -> None:
        self._reader = reader
        self._step = step
        self._manifests = reader.manifests()
        self._values: dict[str, tuple[int, Any]] = {}
        self._blocks: dict[str, list[tuple[int, TensorRecord]]] = {}
        self._wanted: list[Run] = []
        for manifest in self._manifests:
            for key, node in manifest.tree.items():
                record = manifest.tensors.get(node.get("$array", "")) if isinstance(node, dict) else None
                if record is None or record.global_shape is None:
                    self._values[key] = (manifest.rank, node)
                else:
                    self._blocks.setdefault(key.rpartition(_AT)[0], []).append((manifest.rank, record))

    @property
    def world_size(self) -> int:
        return len(self._manifests)

    def data_state(self, rank: int) -> Any:
        return self._manifests[rank].data_state

    def want(self, name: str, leaf: Any) -> Any:
        """Plans one leaf; returns what makes it once all is read."""
        if not isinstance(leaf, jax.Array | jax.ShapeDtypeStruct):
            return self._value(name)
        if name not in self._blocks:
            raise CheckpointNotFound(f"step {self._step} has no array {name!r}")
        plain = _plain(leaf)
        blocks = self._blocks[name]
        saved = blocks[0][1]
        if (saved.global_shape, type_name(saved.dtype)) != (tuple(plain.shape), plain.dtype.name):
            raise InvalidArgument(
                f"{name} was saved as {type_name(saved.dtype)}{list(saved.global_shape or ())}, and is wanted as "
                f"{plain.dtype.name}{list(plain.shape)}"
            )
        sharding = plain.sharding or jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
        parts: dict[Block, Any] = {}
        for index in sharding.addressable_devices_indices_map(tuple(plain.shape)).values():
            block = _block(index, plain.shape)
            if block not in parts:
                parts[block] = self._memory(name, block, blocks, plain.dtype)

        def make() -> Any:
            array = jax.make_array_from_callback(
                tuple(plain.shape), sharding, lambda index: parts[_block(index, plain.shape)]
            )
            return jax.random.wrap_key_data(array, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else array

        return make

    def fill(self) -> None:
        self._reader.fill(self._wanted)

    def _memory(self, name: str, block: Block, blocks: list[tuple[int, TensorRecord]], dtype: Any) -> Any:
        memory = np.empty(block.shape, dtype=dtype)
        if memory.size:
            raw = memory.reshape(-1).view(np.uint8)
            assert len(raw) == memory.size * itemsize(blocks[0][1].dtype)
            self._wanted.append((raw.data, list(plan_pieces(name, block, blocks))))
        return memory

    def _value(self, name: str) -> Any:
        if name not in self._values:
            raise CheckpointNotFound(f"step {self._step} has no value {name!r}")
        rank, node = self._values[name]
        return self._reader.plan_value(rank, node, self._wanted)


class JaxTree(ArrayTree):
    """A part of a training state. Its leaves are saved by their paths; the script's tree says how they hang together,
    because its classes are not saved."""

    def state_dict(self) -> dict[str, Any]:
        return {name: _held(name, leaf) for name, leaf in _named(self.value).items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        leaves = _named(self.value)
        if odd := sorted(leaves.keys() ^ state.keys()):
            raise InvalidArgument(
                f"the checkpoint and the tree of the script differ in {odd[:5]}", hint="Resume with the same model."
            )
        loaded = [_placed_like(name, leaf, state[name]) for name, leaf in leaves.items()]
        self.value = jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(self.value), loaded)

    def block_of(self, array: str, shape: tuple[int, ...]) -> Block:
        leaf = _named(self.value).get(array)
        plain = _plain(leaf) if isinstance(leaf, jax.Array) else None
        if plain is None or plain.shape != shape:
            return Block(offset=(0,) * len(shape), shape=shape)
        return _own_block(array, plain)


def jax_part(given: Any) -> JaxTree | None:
    """A tree with JAX's arrays in it; None for anything else."""
    if is_stateful(given) or not any(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(given)):
        return None
    return JaxTree(given)


def _held(name: str, leaf: Any) -> Any:
    """What this process saves of a leaf: all that it holds."""
    if not isinstance(leaf, jax.Array):
        return leaf
    array = _plain(leaf)
    if array.is_fully_addressable:
        return array
    if array.is_fully_replicated:
        return np.asarray(array.addressable_data(0))
    own = _own_block(name, array)
    value = np.empty(own.shape, dtype=array.dtype)
    for shard in array.addressable_shards:
        value[_inside(_block(shard.index, array.shape), own)] = np.asarray(shard.data)
    return Sharded(value, array.shape, own.offset)


def _placed_like(name: str, leaf: Any, loaded: Any) -> Any:
    """What was loaded, all of it or this process's block, on the devices of the script's leaf."""
    if not isinstance(leaf, jax.Array):
        return loaded
    plain, value = _plain(leaf), np.asarray(loaded)
    whole = Block(offset=(0,) * plain.ndim, shape=plain.shape)
    own = whole if value.shape == plain.shape else _own_block(name, plain)
    if (value.shape, value.dtype) != (own.shape, plain.dtype):
        raise InvalidArgument(
            f"{name} was saved as {value.dtype}{list(value.shape)}, and is wanted as {plain.dtype}{list(own.shape)}",
            hint="Resume with the same model.",
        )
    array = jax.make_array_from_callback(
        plain.shape, plain.sharding, lambda index: np.asarray(value[_inside(_block(index, plain.shape), own)])
    )
    return jax.random.wrap_key_data(array, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else array


def _own_block(name: str, array: Any) -> Block:
    """The one block that the devices of this process hold together."""
    blocks = {_block(shard.index, array.shape) for shard in array.addressable_shards}
    start = tuple(map(min, zip(*(block.offset for block in blocks), strict=True)))
    ends = [[at + size for at, size in zip(block.offset, block.shape, strict=True)] for block in blocks]
    shape = tuple(max(end) - at for end, at in zip(zip(*ends, strict=True), start, strict=True))
    if sum(math.prod(block.shape) for block in blocks) != math.prod(shape):
        raise UnsupportedState(
            f"{name} lies on the devices of this process in blocks that do not touch",
            hint="Save it with pack_tree and restore_tree, which keep every block by itself.",
        )
    return Block(offset=start, shape=shape)


def _inside(block: Block, outer: Block) -> tuple[slice, ...]:
    places = zip(block.offset, outer.offset, block.shape, strict=True)
    return tuple(slice(at - first, at - first + size) for at, first, size in places)


def _named(tree: Any) -> dict[str, Any]:
    """The leaves by their path: "params/Dense_0/kernel"."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    found = {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in leaves}
    if len(found) != len(leaves):
        raise InvalidArgument("two leaves of the tree have the same path", hint="Rename one of them.")
    return found


def _is_key(leaf: Any) -> bool:
    return bool(jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key))


def _plain(leaf: Any) -> Any:
    """Random keys as the numbers in them."""
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _block(index: tuple[slice, ...], shape: tuple[int, ...]) -> Block:
    bounds = [cut.indices(size) for cut, size in zip(index, shape, strict=True)]
    return Block(offset=tuple(a for a, _, _ in bounds), shape=tuple(b - a for a, b, _ in bounds))


def _said_by_first(steps: list[int]) -> list[int]:
    """The first process's list, in every process."""
    if jax.process_count() == 1:
        return steps
    count = int(multihost_utils.broadcast_one_to_all(np.int32(len(steps))))
    padded = np.array(steps or [0] * count, dtype=np.int64)
    halves = np.stack([padded >> 31, padded & 0x7FFFFFFF]).astype(np.int32)  # JAX has no int64 unless asked
    high, low = multihost_utils.broadcast_one_to_all(halves)
    return [(int(a) << 31) | int(b) for a, b in zip(high, low, strict=True)]


def _all(good: bool) -> bool:
    if jax.process_count() == 1:
        return good
    return bool(multihost_utils.process_allgather(np.int32(good)).all())
