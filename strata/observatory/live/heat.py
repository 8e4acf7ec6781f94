"""One metric of one run over ranks and steps, as long as somebody looks at it: a matrix of the newest steps, fed by
every tick. Ten thousand ranks take 4 MB; a step of theirs is written, and told, in a millisecond.
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strata.observatory.answers.heat import HeatColumn
from strata.observatory.live.decimate import Floats, Ints

__all__ = ["HeatPicture", "HeatRows"]

_MAX_CELLS = 1 << 20
_MOST_STEPS, _FEWEST_STEPS = 240, 24
_MAX_RATIO = 10_000.0


@dataclass(frozen=True, slots=True)
class HeatRows:
    """Ranks in order, cut into rows: row i begins at place `starts[i]` of `order`, which are places in the matrix."""

    ranks: Ints
    order: Ints
    starts: Ints

    @property
    def first_ranks(self) -> list[int]:
        found: list[int] = self.ranks[self.starts].tolist()
        return found

    @property
    def last_ranks(self) -> list[int]:
        ends = np.append(self.starts, len(self.ranks))[1:]
        found: list[int] = self.ranks[ends - 1].tolist()
        return found


class HeatPicture:
    """A column is a step at which anybody logged. What a rank logs twice for a step counts as it was logged last."""

    def __init__(self, num_ranks: int) -> None:
        self.id = uuid.uuid4().hex[:8]
        self.version = 0
        self.max_steps = max(_FEWEST_STEPS, min(_MOST_STEPS, _MAX_CELLS // max(1, num_ranks)))
        self._cells: npt.NDArray[np.float32] = np.full((self.max_steps, max(8, num_ranks)), np.nan, np.float32)
        self._place: dict[int, int] = {}  # of a rank
        self._ranks: list[int] = []
        self._slots: dict[int, int] = {}  # of a step
        self._changed = np.zeros(self.max_steps, np.int64)

    @property
    def num_ranks(self) -> int:
        return len(self._ranks)

    def steps(self) -> list[int]:
        return sorted(self._slots)

    def put(self, ranks: Iterable[int], steps: Ints, values: Floats, *, over: bool = True) -> None:
        """Points in order of arrival; `over`: also in place of what is known."""
        places = np.fromiter((self._place_of(rank) for rank in ranks), np.int64, len(steps))
        wanted = np.unique(steps)
        is_full, most_of_all = len(self._slots) == self.max_steps, 2 * len(steps) > self.num_ranks
        if over and is_full and most_of_all and int(wanted[-1]) < min(self._slots):
            self.cut(0)  # they start over, and nobody said so; one that is late is only late
        with np.errstate(over="ignore"):
            single = values.astype(np.float32)
        for step in wanted[-self.max_steps :].tolist():
            slot = self._slot(step)
            if slot is None:
                continue
            mine = steps == step
            into, fresh = places[mine], single[mine]
            if not over:
                empty = np.isnan(self._cells[slot, into])
                into, fresh = into[empty], fresh[empty]
            self._cells[slot, into] = fresh
            self.version += 1
            self._changed[slot] = self.version

    def cut(self, step: int) -> None:
        """Nothing is known of this step and later ones any more."""
        for known in [known for known in self._slots if known >= step]:
            self._cells[self._slots.pop(known)] = np.nan
        self.version += 1

    def rows(self, most: int, first_rank: int, last_rank: int) -> HeatRows:
        """These ranks in at most so many rows, each of about as many ranks."""
        ranks = np.array(self._ranks, np.int64)
        order = np.argsort(ranks, kind="stable")
        order = order[(ranks[order] >= first_rank) & (ranks[order] <= last_rank)]
        num_rows = min(most, len(order))
        starts = np.arange(num_rows, dtype=np.int64) * len(order) // max(1, num_rows)
        return HeatRows(ranks[order], order, starts)

    def columns(self, rows: HeatRows, after: int) -> list[HeatColumn]:
        """Those that changed after a version, oldest step first."""
        return [
            self._column(step, slot, rows) for step, slot in sorted(self._slots.items()) if self._changed[slot] > after
        ]

    def _column(self, step: int, slot: int, rows: HeatRows) -> HeatColumn:
        every = self._cells[slot, : self.num_ranks].astype(np.float64)
        finite = np.flatnonzero(np.isfinite(every))
        if len(finite) == 0:
            nothing: list[int | None] = [None] * len(rows.starts)
            return HeatColumn(step=step, median=None, top_rank=None, top_ratio=None, ratios=nothing)
        median, top = float(np.median(every[finite])), int(finite[np.argmax(every[finite])])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratios = every / median
        known = bool(np.isfinite(ratios[top]))
        return HeatColumn(
            step=step,
            median=median,
            top_rank=self._ranks[top],
            top_ratio=float(ratios[top]) if known else None,
            ratios=_farthest(ratios[rows.order], rows.starts),
        )

    def _place_of(self, rank: int) -> int:
        place = self._place.get(rank)
        if place is None:
            place = self._place[rank] = len(self._ranks)
            self._ranks.append(rank)
            if place >= self._cells.shape[1]:
                self._cells = np.concatenate([self._cells, np.full_like(self._cells, np.nan)], axis=1)
            self.id = uuid.uuid4().hex[:8]  # rows are other ones now
        return place

    def _slot(self, step: int) -> int | None:
        """None for a step that is older than all that there is room for."""
        slot = self._slots.get(step)
        if slot is None:
            if len(self._slots) == self.max_steps:
                oldest = min(self._slots)
                if step < oldest:
                    return None
                slot = self._slots.pop(oldest)
                self._cells[slot] = np.nan
            else:
                slot = next(slot for slot in range(self.max_steps) if slot not in self._slots.values())
            self._slots[step] = slot
        return slot


def _farthest(ratios: Floats, starts: Ints) -> list[int | None]:
    """Of each row the ratio that is farthest from 1, in hundredths: a slow rank shows among a hundred others."""
    if len(starts) == 0:
        return []
    known = np.isfinite(ratios)
    high = np.maximum.reduceat(np.where(known, ratios, -np.inf), starts)
    low = np.minimum.reduceat(np.where(known, ratios, np.inf), starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        is_low = np.abs(np.log(np.maximum(low, 1e-9))) > np.abs(np.log(np.maximum(high, 1e-9)))
    chosen = np.where(is_low, low, high)
    cells = np.round(np.clip(np.nan_to_num(chosen), -_MAX_RATIO, _MAX_RATIO) * 100).astype(np.int64)
    empty = ~np.logical_or.reduceat(known, starts)
    return [None if none else cell for cell, none in zip(cells.tolist(), empty.tolist(), strict=True)]
