"""The order of an epoch: which samples make up global batch t. A pure function of (order digest, epoch, t).

Every step takes the same number of samples from every lane, so the batch does not depend on who reads which lane.
Positions are counted in committed samples, never in batches × ranks.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from strata.errors import InvalidArgument
from strata.sharding.lanes import Lane, LaneLayout, locate_many

__all__ = ["EpochOrder", "SampleRefs", "Tail", "default_lanes"]

Tail = Literal["ragged", "drop", "pad"]


def default_lanes(global_batch: int, world_size: int, limit: int = 64) -> int:
    """The largest divisor of the global batch up to `limit`, or the smallest that gives every worker a lane."""
    small = [d for d in range(1, math.isqrt(global_batch) + 1) if global_batch % d == 0]
    divisors = sorted({*small, *(global_batch // d for d in small)})
    fitting = [d for d in divisors if d <= limit]
    if fitting[-1] >= world_size:
        return fitting[-1]
    return next((d for d in divisors if d >= world_size), divisors[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRefs:
    """Samples by (shard, row), lane after lane. `num_padded` of them repeat samples of the epoch's start."""

    shards: NDArray[np.int64]
    rows: NDArray[np.int64]
    lanes: NDArray[np.int64]
    num_padded: int = 0

    def __len__(self) -> int:
        return len(self.shards)


class EpochOrder:
    """Steps over a LaneLayout: `per_lane` samples of each lane per step, and one rule for what does not fill a batch.

    ragged: one last, smaller batch (every sample exactly once). drop: no such batch. pad: it is filled with samples of
    the epoch's first batch, and they are counted.
    """

    def __init__(self, layout: LaneLayout, global_batch: int, tail: Tail = "ragged") -> None:
        if global_batch < 1 or global_batch % layout.spec.num_lanes:
            raise InvalidArgument(
                f"the global batch of {global_batch} is not a multiple of the {layout.spec.num_lanes} lanes",
                hint="The lane count must divide batch_size × worker_count; leave num_lanes unset to have it chosen.",
            )
        if tail not in get_args(Tail):
            raise InvalidArgument(f"tail policy {tail!r} is unknown", hint=f"Allowed: {', '.join(get_args(Tail))}.")
        self.layout = layout
        self.spec = layout.spec
        self.global_batch = global_batch
        self.tail: Tail = tail
        self.per_lane = global_batch // layout.spec.num_lanes
        self.num_steps = self.steps_from(0)
        self.num_dropped = layout.num_samples % global_batch if tail == "drop" else 0
        self.num_padded = -layout.num_samples % global_batch if tail == "pad" else 0
        self._epoch = 0
        self._lanes: dict[int, Lane] = {}

    def offset_of(self, position: int) -> int:
        """Committed samples → how far every lane is. Positions lie on lane boundaries, or at the end."""
        if not 0 <= position <= self.layout.num_samples:
            raise InvalidArgument(f"position {position} is outside 0…{self.layout.num_samples}")
        offset, rest = divmod(position, self.spec.num_lanes)
        if position == self.layout.num_samples:
            return offset + (rest > 0)
        if rest:
            raise InvalidArgument(f"position {position} is not a multiple of the {self.spec.num_lanes} lanes")
        return offset

    def position_of(self, offset: int) -> int:
        """How many samples are committed when every lane has given `offset` (or all it has)."""
        return min(offset * self.spec.num_lanes, self.layout.num_samples)

    def steps_from(self, offset: int) -> int:
        """How many batches are left in the epoch when every lane has given `offset` samples."""
        left = self.layout.num_samples - self.position_of(offset)
        return left // self.global_batch if self.tail == "drop" else -(-left // self.global_batch)

    def lane(self, number: int, epoch: int) -> Lane:
        """A lane of this epoch. Those of the last epoch asked for are kept: steps follow each other."""
        if epoch != self._epoch:
            self._epoch, self._lanes = epoch, {}
        if number not in self._lanes:
            self._lanes[number] = self.layout.lane(number, epoch)
        return self._lanes[number]

    def batch(self, epoch: int, step: int, lanes: Iterable[int] | None = None) -> SampleRefs:
        """Global batch `step` of an epoch that began at 0, or the part of it in `lanes`."""
        return self.batch_at(epoch, step * self.per_lane, lanes)

    def batch_at(self, epoch: int, offset: int, lanes: Iterable[int] | None = None) -> SampleRefs:
        """The batch that starts when every lane has given `offset` samples. Nothing before it is computed."""
        if not self.steps_from(offset):
            raise InvalidArgument(f"no batch starts at lane offset {offset}: the epoch ends before")
        wanted = sorted(range(self.spec.num_lanes) if lanes is None else lanes)
        shards, rows, places = locate_many(
            [self.lane(number, epoch) for number in wanted], offset, offset + self.per_lane
        )
        numbers = np.array(wanted, dtype=np.int64)[places]
        pads = {number: pads for number in wanted if (pads := self.pads(number, offset))}
        if not pads:
            return SampleRefs(shards=shards, rows=rows, lanes=numbers)
        for number, missing in pads.items():
            more_shards, more_rows = self.padding(epoch, missing)
            shards, rows = np.concatenate([shards, more_shards]), np.concatenate([rows, more_rows])
            numbers = np.concatenate([numbers, np.full(len(missing), number, dtype=np.int64)])
        by_lane = np.argsort(numbers, kind="stable")
        return SampleRefs(
            shards=shards[by_lane],
            rows=rows[by_lane],
            lanes=numbers[by_lane],
            num_padded=sum(len(missing) for missing in pads.values()),
        )

    def num_rows(self, number: int, offset: int) -> int:
        """How many samples this lane gives to the batch that starts at a lane offset, padding included."""
        return self.per_lane if self.tail == "pad" else self.per_lane - self._missing(number, offset)

    def pads(self, number: int, offset: int) -> range:
        """Which samples of the epoch's first batch fill up this lane's share; empty unless the tail is padded here."""
        if self.tail != "pad":
            return range(0)
        missing = self._missing(number, offset)
        before = sum(self._missing(lane, offset) for lane in range(number)) if missing else 0
        return range(before, before + missing)

    def padding(self, epoch: int, pads: range) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The samples that `pads` stands for: the epoch's first batch, again from its start when it is too short."""
        lanes = [self.lane(number, epoch) for number in range(self.spec.num_lanes)]
        shards, rows, _ = locate_many(lanes, 0, self.per_lane)
        chosen = np.arange(pads.start, pads.stop) % len(shards)
        return shards[chosen], rows[chosen]

    def _missing(self, number: int, offset: int) -> int:
        left = max(self.layout.lane_length(number) - offset, 0)
        return max(self.per_lane - left, 0)
