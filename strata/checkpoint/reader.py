"""A committed checkpoint read back: every chunk checked against its hash, whole, in part, or cut for another number
of ranks."""

import fnmatch
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import xxhash

from strata.checkpoint.arrays import Arena, ArraySource, Sharded, array_source, itemsize, restore, writable_bytes
from strata.checkpoint.codec import decode, kinds
from strata.checkpoint.layout import attempt_folder
from strata.checkpoint.manifest import CommitManifest, RankManifest, TensorRecord, digest_of
from strata.checkpoint.objects import ObjectPart, find_part
from strata.checkpoint.slices import Block, Piece, even_block, plan_pieces
from strata.checkpoint.spreading import HalfRead, owners_in
from strata.errors import CheckpointNotFound, CorruptCheckpoint, InvalidArgument, StorageNotFound
from strata.storage.base import ObjectStore

__all__ = ["BlockOf", "CheckpointReader", "LoadRequest", "Progress", "Run"]

Progress = Callable[[int, int], None]
Run = tuple[memoryview, Sequence[Piece]]
"""Memory to be filled, and the bytes that it consists of."""
BlockOf = Callable[[str, tuple[int, ...]], Block | None]
"""Which part of a sharded array, by its name and whole shape, this rank has; None: an even share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """What to load: `names` (exact, a prefix before '/', or with * and ?) or all; for which rank of how many; into
    which arrays. With `half` what the ranks have in common is read only by the one that wrote it, and the state is
    HalfRead. With `objects` (by name; the name may be empty) only their states are read."""

    rank: int = 0
    world_size: int = 1
    names: Sequence[str] | None = None
    into: Mapping[str, Any] | None = None
    verify: bool = True
    progress: Progress | None = None
    half: bool = False
    block_of: BlockOf | None = None
    objects: Mapping[str, ObjectPart] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise InvalidArgument(
                f"rank is {self.rank}; with world_size {self.world_size} it must be 0 or more and below"
            )

    def wants(self, name: str) -> bool:
        return self.names is None or any(
            name == each or name.startswith(f"{each}/") or fnmatch.fnmatchcase(name, each) for each in self.names
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """One array to be filled: its shape here, its memory, and the runs of bytes it consists of."""

    name: str
    token: str
    shape: tuple[int, ...]
    memory: memoryview
    data: Any
    pieces: tuple[Piece, ...]


class CheckpointReader:
    """One committed checkpoint. Objects that vanished and bytes that changed come out as CorruptCheckpoint, by name."""

    def __init__(self, store: ObjectStore, commit: CommitManifest) -> None:
        self._store = store
        self.commit = commit
        self._manifests: dict[int, RankManifest] = {}

    def load(self, request: LoadRequest) -> Any:
        """The state as this rank saved it; with `names` a flat dict of the arrays that match; with `objects` a dict of
        their states."""
        if request.objects is not None:
            return {name: self._state_of(name, part, request) for name, part in request.objects.items()}
        own = self.manifest(request.rank % self.commit.world_size)
        owners = owners_in(own.tree)
        half = request.half and request.world_size == self.commit.world_size
        elsewhere = {name: rank for name, rank in owners.items() if rank != own.rank}
        names = [*own.tensors, *(() if half else elsewhere)]
        if unknown := set(request.into or ()) - own.tensors.keys() - elsewhere.keys():
            raise CheckpointNotFound(
                f"step {self.commit.step} has no array named {sorted(unknown)}, which was to be filled",
                hint="`strata checkpoints show` lists what it has.",
            )
        arena = Arena()
        wanted = [
            self._plan(name, request, self.manifest(elsewhere.get(name, own.rank)), arena)
            for name in names
            if request.wants(name)
        ]
        if request.names is not None and not wanted:
            raise CheckpointNotFound(f"step {self.commit.step} has no array named {list(request.names)}")
        self.fill([(each.memory, each.pieces) for each in wanted], verify=request.verify, progress=request.progress)
        kind = kinds(own.tree)
        arrays = {
            each.name: (request.into or {}).get(each.name)
            if each.data is None
            else restore(kind[each.name], each.token, each.shape, each.data)
            for each in wanted
        }
        if half:
            return HalfRead(tree=own.tree, arrays=arrays, owners=owners)
        return decode(own.tree, arrays) if request.names is None else arrays

    def _state_of(self, name: str, part: ObjectPart, request: LoadRequest) -> Any:
        path, node = find_part(self.manifest(request.rank % self.commit.world_size).tree, name, part)
        prefix = f"{path}/" if path else ""

        def block_of(array: str, shape: tuple[int, ...]) -> Block | None:
            return part.block_of(array.removeprefix(prefix), shape)

        names = [path] if path else ["*"]
        arrays = self.load(replace(request, objects=None, block_of=block_of, names=names)) if kinds(node) else {}
        return decode(node, arrays)

    def manifest(self, rank: int) -> RankManifest:
        """A rank's manifest, checked against the hash in COMMIT.json."""
        if rank not in self._manifests:
            entry = self.commit.entry(rank)
            what = f"step {self.commit.step}, rank {rank}: the manifest"
            file = f"{self._store.uri}/{entry.manifest_key}"
            try:
                data = self._store.get(entry.manifest_key)
            except StorageNotFound as error:
                raise CorruptCheckpoint(f"{what} is missing ({file})") from error
            if digest_of(data) != entry.manifest_digest:
                raise CorruptCheckpoint(f"{what} does not match the hash in COMMIT.json ({file})")
            self._manifests[rank] = RankManifest.from_bytes(data, what)
        return self._manifests[rank]

    def manifests(self) -> list[RankManifest]:
        """Every rank's, in their order, fetched side by side."""
        with ThreadPoolExecutor(self._store.parallel_reads, thread_name_prefix="checkpoint-read") as readers:
            return list(readers.map(self.manifest, (entry.rank for entry in self.commit.ranks)))

    def plan_value(self, rank: int, node: Any, wanted: list[Run]) -> Callable[[], Any]:
        """Plans a value out of a rank's tree: what `fill` has to read for it goes into `wanted`; the result gives the
        value when that is done."""
        records = self.manifest(rank).tensors
        kind = kinds(node)
        data = {name: np.empty(records[name].nbytes, dtype=np.uint8) for name in kind}
        for name, memory in data.items():
            source = Piece(rank=rank, source=records[name].offset, target=0, nbytes=records[name].nbytes)
            wanted.append((memory.data, [source]))

        def value() -> Any:
            arrays = {
                name: restore(kind[name], records[name].dtype, records[name].shape, memory)
                for name, memory in data.items()
            }
            return decode(node, arrays)

        return value

    def whole_sizes(self) -> dict[str, int]:
        """Every array of every rank, and its bytes when it is whole. Of one that several ranks have each for itself,
        the first rank's counts."""
        return {
            name: itemsize(record.dtype) * math.prod(record.global_shape or record.shape)
            for name, (_, record) in sorted(self._homes().items())
        }

    def whole(self, names: Iterable[str]) -> dict[str, ArraySource]:
        """These arrays as bytes, put together from all ranks, each byte checked; no library is needed for it."""
        homes, arena, request = self._homes(), Arena(), LoadRequest(block_of=_all_of_it)
        wanted = [self._plan(name, request, homes[name][0], arena) for name in names]
        self.fill([(each.memory, each.pieces) for each in wanted], verify=True)
        return {
            each.name: ArraySource(kind="numpy", token=each.token, shape=each.shape, value=each.data) for each in wanted
        }

    def _homes(self) -> dict[str, tuple[RankManifest, TensorRecord]]:
        found: dict[str, tuple[RankManifest, TensorRecord]] = {}
        for entry in self.commit.ranks:
            manifest = self.manifest(entry.rank)
            for name, record in manifest.tensors.items():
                found.setdefault(name, (manifest, record))
        return found

    def check_sizes(self) -> None:
        """The shallow check: everything COMMIT.json names is there with its size. One listing, no data read."""
        step = self.commit.step
        listed = self._store.list(attempt_folder(step, self.commit.attempt)).objects
        sizes = {found.key: found.size for found in listed}
        for entry in self.commit.ranks:
            for key, size in ((entry.key, entry.size), (entry.manifest_key, entry.manifest_size)):
                if sizes.get(key) != size:
                    state = "is missing" if key not in sizes else f"has {sizes[key]} bytes instead of {size}"
                    raise CorruptCheckpoint(f"step {step}, rank {entry.rank}: {self._store.uri}/{key} {state}")

    def check_bytes(self, progress: Progress | None = None, *, paced: bool = False) -> None:
        """The deep check: reads every chunk of every rank against its hash. With `paced` the next chunk is read when
        `progress` has returned."""
        self.check_sizes()
        total = self.commit.total_bytes
        done = 0
        with ThreadPoolExecutor(self._store.parallel_reads, thread_name_prefix="checkpoint-read") as readers:
            for entry in self.commit.ranks:
                manifest = self.manifest(entry.rank)
                check = partial(self._read_chunk, manifest, targets=())
                indices = range(len(manifest.chunks))
                for size in map(check, indices) if paced else readers.map(check, indices):
                    done += size
                    if progress is not None:
                        progress(done, total)

    def _plan(self, name: str, request: LoadRequest, own: RankManifest, arena: Arena) -> _Wanted:
        record = own.tensors[name]
        given = (request.into or {}).get(name)
        target = None if given is None else array_source(name, given)
        block = _block(name, record, request, None if target is None else target.shard, self.commit.world_size)
        if block is None:
            shape = record.shape
            pieces: tuple[Piece, ...] = (Piece(rank=own.rank, source=record.offset, target=0, nbytes=record.nbytes),)
        else:
            shape = block.shape
            pieces = tuple(plan_pieces(name, block, self._parts(name, own).items()))
        if given is not None:
            memory = writable_bytes(name, target)
            assert target is not None  # else it would not be writable
            if (target.token, target.shape) != (record.dtype, shape):
                raise InvalidArgument(
                    f"{name} has shape {shape} ({record.dtype}), the array to fill {target.shape} ({target.token})"
                )
            return _Wanted(name=name, token=record.dtype, shape=shape, memory=memory, data=None, pieces=pieces)
        data = arena.take(itemsize(record.dtype) * math.prod(shape))
        return _Wanted(name=name, token=record.dtype, shape=shape, memory=data.data, data=data, pieces=pieces)

    def _parts(self, name: str, own: RankManifest) -> dict[int, TensorRecord]:
        """Who saved which part of an array; one that was saved whole is its own only part."""
        record = own.tensors[name]
        if record.global_shape is None:
            return {own.rank: replace(record, global_shape=record.shape, global_offset=(0,) * len(record.shape))}
        found: dict[int, TensorRecord] = {}
        for entry in self.commit.ranks:
            part = self.manifest(entry.rank).tensors.get(name)
            if part is not None and part.global_offset is not None:
                found[entry.rank] = part
        return found

    def fill(
        self,
        wanted: Iterable[Run],
        *,
        verify: bool = True,
        progress: Progress | None = None,
    ) -> None:
        """Fills each memory with its runs of bytes, by rank and chunk, so that no chunk is fetched or hashed twice."""
        by_chunk: dict[tuple[int, int], list[tuple[int, memoryview]]] = {}
        total = 0
        for memory, pieces in wanted:
            for piece in pieces:
                total += piece.nbytes
                size = self.manifest(piece.rank).chunk_bytes
                at, end = piece.source, piece.source + piece.nbytes
                while at < end:
                    stop = min(end, (at // size + 1) * size)
                    start = piece.target + at - piece.source
                    target = memory[start : start + stop - at]
                    by_chunk.setdefault((piece.rank, at // size), []).append((at, target))
                    at = stop

        def fetch(item: tuple[tuple[int, int], list[tuple[int, memoryview]]]) -> int:
            (rank, index), targets = item
            manifest = self.manifest(rank)
            if verify:
                self._read_chunk(manifest, index, sorted(targets, key=lambda target: target[0]))
            else:
                for at, target in targets:
                    self._fill(manifest, at, [target])
            return sum(len(target) for _, target in targets)

        done = 0
        with ThreadPoolExecutor(self._store.parallel_reads, thread_name_prefix="checkpoint-read") as readers:
            for size in readers.map(fetch, sorted(by_chunk.items(), key=lambda item: item[0])):
                done += size
                if progress is not None:
                    progress(done, total)

    def _read_chunk(self, manifest: RankManifest, index: int, targets: Sequence[tuple[int, memoryview]]) -> int:
        """One chunk: wanted bytes go straight to their arrays, the rest to scratch; all of it is hashed."""
        at = index * manifest.chunk_bytes
        end = min(at + manifest.chunk_bytes, manifest.size)
        buffers: list[memoryview] = []
        for start, target in targets:
            if start > at:
                buffers.append(memoryview(bytearray(start - at)))
            buffers.append(target)
            at = start + len(target)
        if at < end:
            buffers.append(memoryview(bytearray(end - at)))
        self._fill(manifest, index * manifest.chunk_bytes, buffers)
        state = xxhash.xxh3_128()
        for buffer in buffers:
            state.update(buffer)
        if state.hexdigest() != manifest.chunks[index]:
            raise CorruptCheckpoint(f"{self._where(manifest, index)} does not match its hash")
        return end - index * manifest.chunk_bytes

    def _fill(self, manifest: RankManifest, offset: int, buffers: list[memoryview]) -> None:
        wanted = sum(len(buffer) for buffer in buffers)
        where = self._where(manifest, offset // manifest.chunk_bytes)
        try:
            got = self._store.read_into(manifest.key, offset, buffers)
        except StorageNotFound as error:
            raise CorruptCheckpoint(f"{where} is missing") from error
        if got != wanted:
            raise CorruptCheckpoint(f"{where} is cut short: {got} of {wanted} bytes")

    def _where(self, manifest: RankManifest, index: int) -> str:
        start = index * manifest.chunk_bytes
        names = manifest.tensors_at(start, start + manifest.chunk_bytes)
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        where = f"{self._store.uri}/{manifest.key}"
        return f"step {self.commit.step}, rank {manifest.rank}, chunk {index} ({shown or 'header'}) of {where}"


def _all_of_it(_: str, shape: tuple[int, ...]) -> Block:
    return Block(offset=(0,) * len(shape), shape=shape)


def _block(
    name: str, record: TensorRecord, request: LoadRequest, wanted: Sharded | None, world_size: int
) -> Block | None:
    """Which box of the whole array to read: the one that the array to fill stands for, the one that the caller has, or
    this rank's even share of a sharded one; None for just what this rank saved."""
    whole = record.global_shape or record.shape
    if wanted is not None:
        if tuple(wanted.global_shape) != whole:
            raise InvalidArgument(f"the array to fill is a part of {wanted.global_shape}, saved was {whole}")
        return Block(offset=tuple(wanted.global_offset), shape=tuple(wanted.value.shape))
    if record.global_shape is not None and request.block_of is not None:
        found = request.block_of(name, record.global_shape)
        if found is not None:
            return found
    if record.global_shape is None or request.world_size == world_size:
        return None
    return even_block(record, request.rank, request.world_size)
