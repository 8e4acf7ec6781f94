"""Lanes: the fixed streams that carry an epoch's order. A lane keeps its samples for ever; an epoch only reorders them.

The shards, in hash order, are cut once into `num_lanes` streams of equal length (±1 sample). Each epoch permutes the
pieces of a lane and shuffles inside a window of them. Everything is computed on demand from (sizes, OrderSpec, epoch).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from strata.errors import InvalidArgument
from strata.sharding.hashing import derive_key, hash_order
from strata.sharding.permutation import Permutation, permute_many
from strata.sharding.spans import NO_SPANS, Spans, joined

__all__ = ["Lane", "LaneLayout", "OrderSpec", "Window", "locate_many"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSpec:
    """All that fixes the order of a dataset, beside its shard sizes. `window` counts pieces shuffled together."""

    manifest: str
    seed: int
    num_lanes: int
    window: int = 8
    shuffle: bool = True

    def __post_init__(self) -> None:
        for name, value in (("num_lanes", self.num_lanes), ("window", self.window)):
            if value < 1:
                raise InvalidArgument(f"{name} must be at least 1: {value}")

    @property
    def digest(self) -> str:
        """Two orders with the same digest read the same samples in the same order, whatever the world size."""
        text = f"{self.manifest}|{self.seed}|{self.num_lanes}|{self.window}|{self.shuffle}"
        return blake2b(text.encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Consecutive pieces of a lane that are shuffled together: rows `first`…`first + length - 1` of each `shards[i]`.

    The window covers lane positions `start`…`stop - 1`; position start + i is row `permutation[i]` of the
    pieces laid end to end.
    """

    start: int
    stop: int
    shards: NDArray[np.int64]
    first: NDArray[np.int64]
    length: NDArray[np.int64]
    shuffle: Permutation | None

    def permutation(self) -> NDArray[np.int64]:
        return np.arange(self.stop - self.start, dtype=np.int64) if self.shuffle is None else self.shuffle.all()

    def place(self, local: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(shards, rows) of places in the pieces laid end to end."""
        ends = np.cumsum(self.length)
        piece = np.searchsorted(ends, local, side="right")
        return self.shards[piece], self.first[piece] + local - (ends - self.length)[piece]


class Lane:
    """One lane in one epoch: its pieces in this epoch's order, grouped into windows."""

    __slots__ = ("_bounds", "_first", "_key", "_length", "_open", "_piece_bounds", "_shards", "num_samples", "number")

    def __init__(self, number: int, pieces: "_Pieces", spec: OrderSpec, epoch: int) -> None:
        self.number = number
        self._key = derive_key("lane", spec.manifest, spec.seed, epoch, number) if spec.shuffle else None
        order = hash_order(len(pieces.shards), self._key) if self._key is not None else slice(None)
        self._shards, self._first, self._length = pieces.shards[order], pieces.first[order], pieces.length[order]
        self.num_samples = int(self._length.sum())
        # The first window of each lane is shorter by a different amount, so that lanes change windows at different
        # steps: readers get an even load, and the first batch needs half the pieces.
        head = 1 + number % spec.window
        count = len(self._shards)
        self._piece_bounds = np.concatenate(([0], np.arange(head, count, spec.window), [count] if count else []))
        self._piece_bounds = self._piece_bounds.astype(np.int64)
        self._bounds = np.concatenate(([0], np.cumsum(self._length)))[self._piece_bounds]
        self._open: Window | None = None

    @property
    def num_windows(self) -> int:
        return len(self._bounds) - 1

    def window_span(self, index: int) -> tuple[int, int]:
        """The lane positions of a window: first, and one past the last."""
        return int(self._bounds[index]), int(self._bounds[index + 1])

    def window(self, index: int) -> Window:
        pieces = slice(int(self._piece_bounds[index]), int(self._piece_bounds[index + 1]))
        start, stop = self.window_span(index)
        return Window(
            start=start,
            stop=stop,
            shards=self._shards[pieces],
            first=self._first[pieces],
            length=self._length[pieces],
            shuffle=None if self._key is None else Permutation(stop - start, derive_key("window", self._key, index)),
        )

    def window_at(self, position: int) -> int:
        """The index of the window that holds a lane position."""
        return int(np.searchsorted(self._bounds, position, side="right")) - 1

    def spans(self, start: int, stop: int) -> Iterator[tuple[Window, int, int]]:
        """The windows that hold lane positions start…stop-1, and which of them each."""
        stop = min(stop, self.num_samples)
        while start < stop:
            if self._open is None or not self._open.start <= start < self._open.stop:
                self._open = self.window(self.window_at(start))
            upto = min(stop, self._open.stop)
            yield self._open, start, upto
            start = upto


def locate_many(
    lanes: Sequence[Lane], start: int, stop: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(shards, rows, place in `lanes`) of positions start…stop-1 of each lane, lane by lane, shuffled in one pass."""
    nothing = np.empty(0, dtype=np.int64)
    spans = [(place, *span) for place, lane in enumerate(lanes) for span in lane.spans(start, stop)]
    if not spans:
        return nothing, nothing, nothing
    counts = [upto - low for _, _, low, upto in spans]
    local = np.concatenate([np.arange(low - window.start, upto - window.start) for _, window, low, upto in spans])
    shuffles = [window.shuffle for _, window, _, _ in spans if window.shuffle is not None]
    if shuffles:
        local = permute_many(shuffles, counts, local)
    parts = np.split(local, np.cumsum(counts)[:-1])
    placed = [window.place(part) for (_, window, _, _), part in zip(spans, parts, strict=True)]
    owners = np.repeat(np.array([place for place, _, _, _ in spans], dtype=np.int64), counts)
    return np.concatenate([shards for shards, _ in placed]), np.concatenate([rows for _, rows in placed]), owners


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pieces:
    shards: NDArray[np.int64]
    first: NDArray[np.int64]
    length: NDArray[np.int64]


class LaneLayout:
    """The cut of a manifest's shards into lanes; the same in every epoch, so a worker's files stay the same."""

    __slots__ = ("_ends", "_order", "num_samples", "sizes", "spec")

    def __init__(self, sizes: NDArray[np.int64], spec: OrderSpec) -> None:
        if len(sizes) and int(sizes.min()) < 0:
            raise InvalidArgument(f"shard {int(sizes.argmin())} has a negative size: {int(sizes.min())}")
        self.spec = spec
        self.sizes = np.asarray(sizes, dtype=np.int64)
        # Unshuffled lanes follow the files as they are, so that one lane alone is the dataset from start to end.
        self._order = (
            hash_order(len(sizes), derive_key("lanes", spec.manifest))
            if spec.shuffle
            else np.arange(len(sizes), dtype=np.int64)
        )
        self._ends = np.cumsum(self.sizes[self._order])
        self.num_samples = int(self._ends[-1]) if len(sizes) else 0

    def lane_length(self, number: int) -> int:
        start, stop = self._bounds(number)
        return stop - start

    def lane(self, number: int, epoch: int) -> Lane:
        """Cost: the pieces of one lane (shards / lanes), not the dataset."""
        return Lane(number, self._pieces(number), self.spec, epoch)

    def samples_of(self, lanes: Iterable[int]) -> Spans:
        """The numbers of all samples in these lanes: the same in every epoch, whatever its order."""
        starts, pieces = np.cumsum(self.sizes) - self.sizes, [self._pieces(number) for number in lanes]
        low = [starts[piece.shards] + piece.first for piece in pieces]
        high = [start + piece.length for start, piece in zip(low, pieces, strict=True)]
        return joined(np.concatenate(low), np.concatenate(high)) if low else NO_SPANS

    def _bounds(self, number: int) -> tuple[int, int]:
        if not 0 <= number < self.spec.num_lanes:
            raise InvalidArgument(f"lane {number} is outside 0…{self.spec.num_lanes - 1}")
        # The lanes with one sample more come first.
        share, extra = divmod(self.num_samples, self.spec.num_lanes)
        start = number * share + min(number, extra)
        return start, start + share + (number < extra)

    def _pieces(self, number: int) -> _Pieces:
        start, stop = self._bounds(number)
        if start == stop:
            nothing = np.empty(0, dtype=np.int64)
            return _Pieces(shards=nothing, first=nothing, length=nothing)
        low = int(np.searchsorted(self._ends, start, side="right"))
        high = int(np.searchsorted(self._ends, stop, side="left")) + 1
        ends = self._ends[low:high]
        starts = np.concatenate((self._ends[low - 1 : low] if low else [0], ends[:-1])).astype(np.int64)
        shards = self._order[low:high]
        first = np.maximum(start - starts, 0)
        length = np.minimum(ends, stop) - (starts + first)
        filled = length > 0
        return _Pieces(shards=shards[filled], first=first[filled], length=length[filled])
