"""Parts of epochs that a job passes over: ranges of positions, the same for every rank and every world size.

A fork that leaves out the batches of a spike has them. They are resolved once, from the cursor of the checkpoint that
the fork begins with, and then travel in the cursor itself.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from strata.errors import InvalidArgument, Refused
from strata.sharding.order import EpochOrder

__all__ = ["Segment", "Skip", "Skips"]

_MAX_SKIPS = 10_000


class Skip(NamedTuple):
    """The samples from position `start` to `stop` of an epoch's order are read by nobody."""

    epoch: int
    start: int
    stop: int


class Segment(NamedTuple):
    """Batches one after the other: the first begins when every lane has given `offset` samples."""

    offset: int
    num_steps: int


class Skips:
    """What is passed over, sorted, touching ranges joined. Immutable."""

    def __init__(self, skips: Iterable[Skip] = ()) -> None:
        self.all = _joined(skips)

    @classmethod
    def from_state(cls, state: object) -> "Skips":
        """As `to_state` wrote it, in a cursor that may come from anywhere."""
        if not isinstance(state, list | tuple):
            raise InvalidArgument(f"skips of the loader's state are {type(state).__name__}, not a list")
        found = []
        for item in state:
            if not (isinstance(item, list | tuple) and len(item) == 3 and all(type(number) is int for number in item)):
                raise InvalidArgument(f"{item!r} is no skip: it must be [epoch, start, stop]")
            skip = Skip(*item)
            if skip.epoch < 0 or not 0 <= skip.start < skip.stop:
                raise InvalidArgument(f"a skip of epoch {skip.epoch} from {skip.start} to {skip.stop} makes no sense")
            found.append(skip)
        return cls(found)

    def to_state(self) -> list[list[int]]:
        return [list(skip) for skip in self.all]

    def segments(self, order: EpochOrder, epoch: int, offset: int) -> tuple[Segment, ...]:
        """What is read of the rest of an epoch."""
        found: list[Segment] = []
        for skip in self.all:
            if skip.epoch != epoch:
                continue
            start, stop = order.offset_of(skip.start), order.offset_of(skip.stop)
            if start > offset:
                found.append(Segment(offset, (start - offset) // order.per_lane))
            offset = max(offset, stop)
        left = order.steps_from(offset)
        return (*found, Segment(offset, left)) if left else tuple(found)

    def place(self, order: EpochOrder, epoch: int, offset: int) -> tuple[int, int]:
        """(epoch, offset) of the next batch: what is skipped, and the end of an epoch, are passed over."""
        while True:
            left = self.segments(order, epoch, offset)
            if left:
                return epoch, left[0].offset
            epoch, offset = epoch + 1, 0

    def after(self, order: EpochOrder, epoch: int, offset: int, num_batches: int) -> tuple[int, int]:
        """(epoch, offset) when so many batches of the epoch were read from here; its end, if it has fewer."""
        for segment in self.segments(order, epoch, offset):
            taken = min(segment.num_steps, num_batches)
            offset, num_batches = segment.offset + taken * order.per_lane, num_batches - taken
            if not num_batches:
                break
        return epoch, offset

    def check(self, order: EpochOrder, epoch: int, offset: int) -> None:
        """Refuses what lies outside of the data, and a global batch that does not end where a skip begins: samples
        would be lost or doubled."""
        for skip in self.all:
            order.offset_of(skip.stop)
            begin = offset if skip.epoch == epoch else 0
            ahead = order.offset_of(skip.start) - begin
            if skip.epoch >= epoch and ahead > 0 and ahead % order.per_lane:
                raise Refused(
                    f"the batches that are left out begin at sample {skip.start} of epoch {skip.epoch}, which is no "
                    f"border of global batches of {order.global_batch}",
                    hint="Keep batch_size × worker_count as the run had it for which the batches were named.",
                )

    def without(self, order: EpochOrder, place: tuple[int, int], ranges: Sequence[tuple[int, int]]) -> "Skips":
        """Also passes over the batches first…last (0 is the next one from `place` on), counted as these skips leave
        them: over as many epochs as it takes."""
        found = list(self.all)
        epoch, offset = place
        number, end = 0, max((last for _, last in ranges), default=-1)
        while number <= end:
            for segment in self.segments(order, epoch, offset):
                for first, last in ranges:
                    low, high = max(first - number, 0), min(last + 1 - number, segment.num_steps)
                    if low < high:
                        edges = (segment.offset + step * order.per_lane for step in (low, high))
                        found.append(Skip(epoch, *map(order.position_of, edges)))
                number += segment.num_steps
            if len(found) > _MAX_SKIPS:
                raise Refused(f"more than {_MAX_SKIPS} ranges of epochs would be left out", hint="Leave out fewer.")
            epoch, offset = epoch + 1, 0
        return Skips(found)


def _joined(skips: Iterable[Skip]) -> tuple[Skip, ...]:
    found: list[Skip] = []
    for skip in sorted(skips):
        last = found[-1] if found else None
        if last is not None and (last.epoch, last.stop) >= (skip.epoch, skip.start):
            found[-1] = last._replace(stop=max(last.stop, skip.stop))
        else:
            found.append(skip)
    return tuple(found)
