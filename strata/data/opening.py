"""A window whose rows can be had before all of it is read: a batch waits for the blocks in which its own rows lie.

A job that begins with 64 lanes of 8 blocks each would otherwise read 512 blocks before its first batch.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial

import numpy as np
from numpy.typing import NDArray

from strata.data.blocks import BlockSource, WindowRows
from strata.data.table.columns import Block, Columns, join, take
from strata.sharding.lanes import Window

__all__ = ["OpeningWindow"]

_Blocks = dict[int, Future[Block]]  # by the number of the piece that lies in it


class OpeningWindow:
    """Hands out the rows of the WindowRows that it becomes. One thread picks, others may read for it meanwhile. A block
    that cannot be read is raised by the first pick that needs it."""

    def __init__(self, source: BlockSource, window: Window) -> None:
        self.stop = window.stop
        self._source = source
        self._window = window
        self._ends = np.cumsum(window.length)
        self._blocks: _Blocks = {}
        self._rows: WindowRows | None = None
        self._completing = False
        self._lock = threading.Lock()

    def reads(self, low: int, high: int) -> Iterator[Callable[[], object]]:
        """The reads that the rows of lane positions low…high-1 need, to be done by any thread. None of them raises."""
        _, pieces = self._places(low, min(high, self.stop))
        return (partial(self._read, self._blocks, piece) for piece in np.unique(pieces).tolist())

    def complete(self) -> None:
        """Reads the rest and puts the rows into their order, once. A block that cannot be read leaves it as it is."""
        with self._lock:
            if self._completing:
                return
            self._completing = True
        blocks = [self._read(self._blocks, piece) for piece in range(len(self._window.shards))]
        if all(block.exception() is None for block in blocks):
            self._rows = self._source.arrange(self._window, (block.result() for block in blocks))
            self._blocks = {}  # after the rows are there: `pick` looks in the other order

    def pick(self, low: int, high: int) -> tuple[Columns, slice]:
        """The rows of lane positions low…high-1, as part of columns. Reads what nobody has read yet."""
        blocks = self._blocks
        if self._rows is None and len(blocks) == len(self._window.shards) and all(map(Future.done, blocks.values())):
            self.complete()
        if self._rows is not None:
            return self._rows.pick(low, high)
        return self._picked(blocks, low, high), slice(None)

    def _picked(self, blocks: _Blocks, low: int, high: int) -> Columns:
        places, pieces = self._places(low, high)
        parts: list[Columns] = []
        chosen: list[NDArray[np.int64]] = []
        for piece in np.unique(pieces).tolist():
            block = self._read(blocks, piece).result()
            here = np.flatnonzero(pieces == piece)
            begin = self._ends[piece] - self._window.length[piece] - self._window.first[piece]
            rows = places[here] - begin
            if block.kept is not None:
                there = np.isin(rows, block.kept)
                here, rows = here[there], np.searchsorted(block.kept, rows[there])
            if len(rows):
                parts.append(take(block.columns, rows))
                chosen.append(here)
        return join(parts, np.argsort(np.concatenate(chosen))) if parts else {}

    def _places(self, low: int, high: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the rows are in the pieces laid end to end, and in which piece each."""
        positions = np.arange(low - self._window.start, high - self._window.start, dtype=np.int64)
        places = positions if self._window.shuffle is None else self._window.shuffle(positions)
        return places, np.searchsorted(self._ends, places, side="right")

    def _read(self, blocks: _Blocks, piece: int) -> Future[Block]:
        """Each block is read once, by the first thread that asks for it."""
        with self._lock:
            known = blocks.get(piece)
            if known is not None:
                return known
            mine = blocks[piece] = Future[Block]()
        try:
            mine.set_result(self._source.piece(self._window, piece))
        except BaseException as error:  # raised by whoever needs it; nobody must wait for it without end
            mine.set_exception(error)
            if not isinstance(error, Exception):
                raise
        return mine
