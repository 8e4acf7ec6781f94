"""Reads blocks and windows of a manifest: the one path from (shard, row) to values, for training and for preview.

Blocks that lie across a lane's end are read for two windows, so the last few of them are kept.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strata.data.manifest import Manifest
from strata.data.readers import BlockRead, reader_for
from strata.data.readers.base import select
from strata.data.table.columns import Block, Columns, join, num_rows, size_of, take
from strata.errors import DataError
from strata.sharding.lanes import Window

__all__ = ["INDEX", "BlockSource", "WindowRows"]

# Always read along: the number of the sample in the dataset, for ledgers and previews.
INDEX = "__index__"


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRows:
    """The rows of lane positions start…stop-1, as columns. When some rows were skipped, `kept` lists those that are
    there."""

    start: int
    stop: int
    columns: Columns
    kept: NDArray[np.int64] | None = None

    def pick(self, low: int, high: int) -> tuple[Columns, slice]:
        """The rows of lane positions low…high-1, as part of columns."""
        if self.kept is None:
            return self.columns, slice(low - self.start, high - self.start)
        first, last = np.searchsorted(self.kept, [low - self.start, high - self.start])
        return self.columns, slice(int(first), int(last))


class BlockSource:
    """Reads blocks; thread-safe. With `on_bad`, rows that cannot be read are reported and left out; without it, the
    first one is raised."""

    def __init__(
        self,
        manifest: Manifest,
        columns: Sequence[str] | None = None,
        on_bad: Callable[[DataError], None] | None = None,
        keep_bytes: int = 64 << 20,
    ) -> None:
        self.manifest = manifest
        self._reader = reader_for(manifest.format)
        self.names = select(manifest.schema, columns, manifest.files[0].uri)
        self.on_bad = on_bad
        self._keep_bytes = keep_bytes
        self._kept: OrderedDict[int, Block] = OrderedDict()
        self._held_bytes = 0
        self._lock = threading.Lock()

    def read(self, shard: int) -> Block:
        """One whole block, with the number of each sample in the column INDEX."""
        manifest = self.manifest
        file = int(manifest.block_files[shard])
        ref, index = manifest.files[file], manifest.indexes[file]
        info = index.blocks[int(manifest.block_numbers[shard])]
        request = BlockRead(
            info=info,
            first_row=int(manifest.first_rows[shard]),
            schema=manifest.schema,
            columns=self.names,
            on_bad=self.on_bad,
        )
        try:
            block = self._reader.read(ref, manifest.source.fetch(ref), request)
        except DataError as error:
            if self.on_bad is None:
                raise
            self.on_bad(error)
            block = Block(columns={}, kept=np.empty(0, dtype=np.int64))
        rows = np.arange(info.num_rows, dtype=np.int64) if block.kept is None else block.kept
        if block.kept is None and num_rows(block.columns) != info.num_rows:
            text = f"{ref.uri}: {num_rows(block.columns)} rows where the index says {info.num_rows}"
            raise DataError(text, file=ref.uri, row=request.first_row)
        return Block(columns={**block.columns, INDEX: rows + int(manifest.starts[shard])}, kept=block.kept)

    def window(self, window: Window) -> "WindowRows":
        """The rows of a window in this epoch's order, without those that were skipped."""
        return self.arrange(window, (self.piece(window, number) for number in range(len(window.shards))))

    def piece(self, window: Window, number: int) -> Block:
        """The block in which a piece of a window lies."""
        shard = int(window.shards[number])
        return self.shared(shard) if window.length[number] < self.manifest.sizes[shard] else self.read(shard)

    def arrange(self, window: Window, blocks: Iterable[Block]) -> "WindowRows":
        """As `window`, of blocks that were read already: those of all its pieces, in order."""
        parts, whole = [], True
        for block, (_, first, length) in zip(blocks, _pieces(window), strict=True):
            part, complete = _cut(block, first, length)
            whole &= complete
            if num_rows(part):
                parts.append(part)
        order = window.permutation()
        if whole:
            return WindowRows(start=window.start, stop=window.stop, columns=join(parts, order))
        present = self._present(window, parts)[order]
        # The others keep their order: row numbers of the full window become row numbers of what is there.
        places = (np.cumsum(self._present(window, parts)) - 1)[order[present]]
        columns = join(parts, places) if parts else {}
        return WindowRows(start=window.start, stop=window.stop, columns=columns, kept=np.flatnonzero(present))

    def rows(self, shards: NDArray[np.int64], rows: NDArray[np.int64]) -> Columns:
        """Single samples by reference, in the order given: for previews and padding."""
        parts: list[Columns] = []
        for shard, row in zip(shards.tolist(), rows.tolist(), strict=True):
            part, _ = _cut(self.shared(shard), row, 1)
            if num_rows(part):
                parts.append(part)
        return join(parts) if parts else {}

    def shared(self, shard: int) -> Block:
        """As `read`, but the last few blocks are kept: for readers that take parts of one."""
        with self._lock:
            if shard in self._kept:
                self._kept.move_to_end(shard)
                return self._kept[shard]
        block = self.read(shard)
        with self._lock:
            if shard not in self._kept:
                self._kept[shard] = block
                self._held_bytes += size_of(block.columns)
            while self._held_bytes > self._keep_bytes and len(self._kept) > 1:
                _, gone = self._kept.popitem(last=False)
                self._held_bytes -= size_of(gone.columns)
        return block

    def _present(self, window: Window, parts: list[Columns]) -> NDArray[np.bool_]:
        """Which rows of the window's pieces, laid end to end, could be read."""
        starts = self.manifest.starts
        wanted = np.concatenate([starts[shard] + first + np.arange(length) for shard, first, length in _pieces(window)])
        return np.isin(wanted, np.concatenate([part[INDEX] for part in parts]) if parts else [])


def _pieces(window: Window) -> Iterator[tuple[int, int, int]]:
    """(shard, first row, rows) of each piece."""
    return zip(window.shards.tolist(), window.first.tolist(), window.length.tolist(), strict=True)


def _cut(block: Block, first: int, length: int) -> tuple[Columns, bool]:
    """Rows first…first+length-1 of a block, and whether none of them is missing."""
    if block.kept is None:
        if first == 0 and length == num_rows(block.columns):
            return block.columns, True
        return take(block.columns, slice(first, first + length)), True
    low, high = np.searchsorted(block.kept, [first, first + length])
    return take(block.columns, slice(int(low), int(high))), int(high - low) == length
