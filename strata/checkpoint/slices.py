"""Which bytes of which rank make up an array: pure arithmetic for loading a checkpoint of N ranks on M."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from strata.checkpoint.arrays import itemsize
from strata.checkpoint.manifest import TensorRecord
from strata.errors import CorruptCheckpoint

__all__ = ["Block", "Piece", "even_block", "plan_pieces"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A box inside an array: where it begins and how far it goes, per axis."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    def meet(self, other: "Block") -> "Block | None":
        start = tuple(max(a, b) for a, b in zip(self.offset, other.offset, strict=True))
        ends = zip(self.offset, self.shape, other.offset, other.shape, strict=True)
        shape = tuple(min(a + n, b + m) - at for (a, n, b, m), at in zip(ends, start, strict=True))
        return Block(offset=start, shape=shape) if all(size > 0 for size in shape) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A run of bytes to copy: from `source` in a rank's object to `target` in the new array."""

    rank: int
    source: int
    target: int
    nbytes: int


def even_block(record: TensorRecord, rank: int, world_size: int) -> Block:
    """The part of a sharded array that rank `rank` of `world_size` gets: cut along the axis it was cut before, the
    first ranks one row longer when it does not divide (as numpy.array_split does)."""
    whole = record.global_shape
    assert whole is not None
    axis = next((axis for axis, (part, full) in enumerate(zip(record.shape, whole, strict=True)) if part != full), 0)
    if not whole:
        return Block(offset=(), shape=())
    size, longer = divmod(whole[axis], world_size)
    start = rank * size + min(rank, longer)
    count = size + (rank < longer)
    offset = tuple(start if at == axis else 0 for at in range(len(whole)))
    return Block(offset=offset, shape=tuple(count if at == axis else full for at, full in enumerate(whole)))


def plan_pieces(name: str, wanted: Block, saved: Iterable[tuple[int, TensorRecord]]) -> Iterator[Piece]:
    """The runs of bytes that fill `wanted`, taken from the ranks' blocks (`saved`: rank and block, in the order to look
    at them); replicated bytes are taken once.

    Raises CorruptCheckpoint when the saved blocks leave a hole.
    """
    covered = 0
    taken: list[Block] = []
    for rank, record in saved:
        assert record.global_offset is not None
        part = Block(offset=record.global_offset, shape=record.shape)
        common = wanted.meet(part)
        if common is None or any(common.meet(earlier) for earlier in taken):
            continue
        taken.append(common)
        covered += math.prod(common.shape)
        yield from _runs(rank, record, part, wanted, common)
    if covered != math.prod(wanted.shape):
        total = math.prod(wanted.shape)
        raise CorruptCheckpoint(f"{name}: the saved parts cover {covered} of the {total} elements at {wanted.offset}")


def _runs(rank: int, record: TensorRecord, part: Block, wanted: Block, common: Block) -> Iterator[Piece]:
    """Rows of `common` that lie in one piece both in the part and in the target, merged as far as both allow."""
    width = itemsize(record.dtype)
    axes = len(common.shape)
    joined = axes  # axes from here on are whole in both, so their rows follow each other without a gap
    while joined > 0 and common.shape[joined - 1] == part.shape[joined - 1] == wanted.shape[joined - 1]:
        joined -= 1
    run_axis = max(joined - 1, 0)
    run = math.prod(common.shape[run_axis:]) * width if axes else width
    for index in itertools.product(*map(range, common.shape[:run_axis])):
        at = tuple(start + step for start, step in zip(common.offset, (*index, *[0] * (axes - run_axis)), strict=True))
        source = record.offset + _position(at, part) * width
        yield Piece(rank=rank, source=source, target=_position(at, wanted) * width, nbytes=run)


def _position(at: Sequence[int], block: Block) -> int:
    position = 0
    for where, start, size in zip(at, block.offset, block.shape, strict=True):
        position = position * size + (where - start)
    return position
