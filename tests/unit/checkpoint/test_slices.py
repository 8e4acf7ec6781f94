"""Resharding arithmetic against numpy: any cut into N, loaded as any cut into M, is the same array."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.checkpoint.manifest import TensorRecord
from strata.checkpoint.slices import Block, even_block, plan_pieces
from strata.errors import CorruptCheckpoint


def _cut(shape: tuple[int, ...], axis: int, parts: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(offset, shape) of each part, as numpy.array_split cuts."""
    edges = np.cumsum([0, *(len(part) for part in np.array_split(np.arange(shape[axis]), parts))])
    found = []
    for start, end in itertools.pairwise(edges):
        offset, size = [0] * len(shape), list(shape)
        offset[axis], size[axis] = int(start), int(end - start)
        found.append((tuple(offset), tuple(size)))
    return found


def _slices(offset: tuple[int, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(at, at + size) for at, size in zip(offset, shape, strict=True))


@given(st.data())
def test_any_cut_loads_as_any_other_box(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    whole = np.arange(math.prod(shape), dtype=np.int16).reshape(shape)
    axis = data.draw(st.integers(0, len(shape) - 1))
    saved, objects = {}, {}
    for rank, (offset, size) in enumerate(_cut(shape, axis, data.draw(st.integers(1, 4)))):
        part = np.ascontiguousarray(whole[_slices(offset, size)])
        saved[rank] = TensorRecord(
            dtype="I16", shape=size, offset=8, nbytes=part.nbytes, global_shape=shape, global_offset=offset
        )
        objects[rank] = b"headerXX" + part.tobytes()
    start = tuple(data.draw(st.integers(0, size - 1)) for size in shape)
    extent = tuple(data.draw(st.integers(1, size - at)) for size, at in zip(shape, start, strict=True))
    target = bytearray(math.prod(extent) * 2)
    for piece in plan_pieces("w", Block(offset=start, shape=extent), saved.items()):
        target[piece.target : piece.target + piece.nbytes] = objects[piece.rank][piece.source :][: piece.nbytes]
    assert np.array_equal(np.frombuffer(target, np.int16).reshape(extent), whole[_slices(start, extent)])


def test_rows_that_follow_each_other_are_one_run() -> None:
    saved = {
        rank: TensorRecord(
            dtype="F32", shape=(50, 100), offset=0, nbytes=20000, global_shape=(100, 100), global_offset=(50 * rank, 0)
        )
        for rank in range(2)
    }
    pieces = list(plan_pieces("w", Block(offset=(25, 0), shape=(50, 100)), saved.items()))
    assert [(piece.rank, piece.source, piece.target, piece.nbytes) for piece in pieces] == [
        (0, 10000, 0, 10000),
        (1, 0, 10000, 10000),
    ]


def test_a_hole_between_the_parts_is_noticed() -> None:
    record = TensorRecord(dtype="F32", shape=(2,), offset=0, nbytes=8, global_shape=(6,), global_offset=(0,))
    with pytest.raises(CorruptCheckpoint, match="w: the saved parts cover 2 of the 6"):
        list(plan_pieces("w", Block(offset=(0,), shape=(6,)), [(0, record)]))


@given(st.integers(0, 40), st.integers(1, 9))
def test_even_blocks_cover_the_axis_in_order(rows: int, world_size: int) -> None:
    record = TensorRecord(dtype="U8", shape=(1, 3), offset=0, nbytes=3, global_shape=(rows, 3), global_offset=(0, 0))
    blocks = [even_block(record, rank, world_size) for rank in range(world_size)]
    assert sum(block.shape[0] for block in blocks) == (rows if rows != 1 else 1)
    at = 0
    for block in blocks:
        assert block.offset[0] == at
        at += block.shape[0]
    assert max(b.shape[0] for b in blocks) - min(b.shape[0] for b in blocks) <= 1
