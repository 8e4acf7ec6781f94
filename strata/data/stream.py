"""The batches of one epoch for one process: windows of its lanes, read ahead, cut into steps, in order.

Knows nothing of coordinators or checkpoints; it starts at any lane offset and never reads what lies before.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.data.blocks import INDEX, BlockSource, WindowRows
from strata.data.opening import OpeningWindow
from strata.data.prefetch import Prefetcher
from strata.data.table.columns import Columns, join
from strata.sharding.lanes import Lane
from strata.sharding.order import EpochOrder

__all__ = ["BatchStream", "Span", "transformed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Part of an epoch: `num_steps` from lane `offset` on (None: all that are left), these lanes; of its steps the
    `first`, then every `stride`-th."""

    epoch: int
    offset: int
    lanes: tuple[int, ...]
    first: int = 0
    stride: int = 1
    num_steps: int | None = None


class BatchStream:
    """Iterate once, then close. Every batch has its samples' numbers in the column INDEX."""

    def __init__(
        self, order: EpochOrder, blocks: BlockSource, span: Span, num_threads: int = 0, prefetch_bytes: int = 0
    ) -> None:
        self._order = order
        self._blocks = blocks
        self._span = span
        self._num_steps = order.steps_from(span.offset) if span.num_steps is None else span.num_steps
        self._lanes = [order.lane(number, span.epoch) for number in sorted(span.lanes)]
        row_bytes = blocks.manifest.block_bytes * blocks.manifest.num_blocks // max(blocks.manifest.num_samples, 1)
        self._row_bytes = max(row_bytes, 1)
        # Of each lane the window that the first step reads, if it has one: it is opened row by row, not read ahead.
        self._first = [self._need(place, 0) for place in range(len(self._lanes))]
        self._windows = Prefetcher(self._schedule(), self._load, num_threads, prefetch_bytes)
        self._open: list[OpeningWindow | WindowRows | None] = [None] * len(self._lanes)
        self._template: Columns = {name: np.empty(0) for name in (*blocks.names, INDEX)}

    @property
    def ahead_bytes(self) -> int:
        return self._windows.ahead_bytes

    def close(self) -> None:
        self._windows.close()

    def __iter__(self) -> Iterator[Columns]:
        for step in range(self._span.first, self._num_steps, self._span.stride):
            offset = self._span.offset + step * self._order.per_lane
            if step == self._span.first:
                self._open_windows(offset)
            yield self._batch(offset)

    def _open_windows(self, offset: int) -> None:
        """The threads read what the first batch needs, then the rest of these windows, then ahead."""
        opened: list[OpeningWindow] = []
        for place, first in enumerate(self._first):
            if first is not None:
                opening = OpeningWindow(self._blocks, self._lanes[place].window(first[1]))
                self._open[place] = opening
                opened.append(opening)
        if self._windows.threaded:
            for opening in opened:
                for read in opening.reads(offset, offset + self._order.per_lane):
                    self._windows.soon(read)
            for opening in opened:
                self._windows.soon(opening.complete)
            self._windows.start()

    def _schedule(self) -> Iterator[tuple[tuple[int, int], int]]:
        """((place in lanes, window), bytes) in exactly the order in which `_batch` asks for them: by step, then lane.

        Works window by window, not step by step: a window may last for thousands of steps.
        """
        needs = [(place, self._need(place, first[1] + 1)) for place, first in enumerate(self._first) if first]
        heap = [(need[0], place, need[1]) for place, need in needs if need]
        heapq.heapify(heap)
        while heap:
            _, place, index = heapq.heappop(heap)
            start, stop = self._lanes[place].window_span(index)
            yield (place, index), (stop - start) * self._row_bytes
            if need := self._need(place, index + 1):
                heapq.heappush(heap, (need[0], place, need[1]))

    def _need(self, place: int, index: int) -> tuple[int, int] | None:
        """(step, window) of the first window from `index` on that one of our steps reads, or None."""
        lane, span, per_lane = self._lanes[place], self._span, self._order.per_lane
        index = max(index, lane.window_at(span.offset))
        while index < lane.num_windows:
            start, stop = lane.window_span(index)
            step = max(start - span.offset, 0) // per_lane
            step = span.first + max(-(-(step - span.first) // span.stride), 0) * span.stride
            if step >= self._num_steps:
                return None
            if span.offset + step * per_lane < stop:
                return step, index
            index += 1
        return None

    def _load(self, key: tuple[int, int]) -> WindowRows:
        place, index = key
        return self._blocks.window(self._lanes[place].window(index))

    def _batch(self, offset: int) -> Columns:
        pieces: list[tuple[Columns, slice]] = []
        for place, lane in enumerate(self._lanes):
            self._collect(pieces, place, lane, offset)
            if pads := self._order.pads(lane.number, offset):
                padding = self._blocks.rows(*self._order.padding(self._span.epoch, pads))
                pieces.append((padding, slice(None)))
        pieces = [(columns, rows) for columns, rows in pieces if columns]
        if not pieces:
            return {name: values[:0] for name, values in self._template.items()}
        self._template = pieces[0][0]
        # Column by column instead of lane by lane: 64 lanes of 4 rows must not cost 64 dictionaries per batch.
        return {name: _stacked([columns[name][rows] for columns, rows in pieces]) for name in self._template}

    def _collect(self, pieces: list[tuple[Columns, slice]], place: int, lane: Lane, offset: int) -> None:
        upto = min(offset + self._order.per_lane, lane.num_samples)
        while offset < upto:
            window = self._open[place]
            if window is None or offset >= window.stop:
                window = self._open[place] = self._windows.get((place, lane.window_at(offset)))
            high = min(upto, window.stop)
            pieces.append(window.pick(offset, high))
            offset = high


def _stacked(parts: list[NDArray[Any]]) -> NDArray[Any]:
    ragged = len({part.shape[1:] for part in parts}) > 1
    joined = join([{"": part} for part in parts])[""] if ragged else np.concatenate(parts)
    if joined.dtype != object or not len(joined) or not all(isinstance(value, np.ndarray) for value in joined):
        return joined
    # Lists that happen to be equally long in this batch are a matrix, whatever blocks they came from.
    return np.stack(list(joined)) if len({value.shape for value in joined}) == 1 else joined


def transformed(
    batches: Iterator[Columns], transform: Callable[[Columns], Columns] | None, num_threads: int
) -> Iterator[Columns]:
    """Applies `transform` in threads, a few batches ahead, and keeps the order. Its errors come out at their batch."""
    if transform is None or not num_threads:
        yield from batches if transform is None else map(transform, batches)
        return
    with ThreadPoolExecutor(max_workers=num_threads, thread_name_prefix="strata-transform") as pool:
        waiting = deque(pool.submit(transform, batch) for batch in islice(batches, num_threads))
        try:
            for batch in batches:
                waiting.append(pool.submit(transform, batch))
                yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
