"""The sticky policy for units of unequal size: loads differ by at most the largest unit, mostly by far less.

For datasets whose shards are row groups or files of different lengths. Cost: O(units) for the first table, then
O(moved × log slots) in Python, since each move depends on the one before.
"""

import heapq
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from strata.sharding.table import UNOWNED, Table, canonical

__all__ = ["plan_weighted"]


def plan_weighted(weights: NDArray[np.int64], slots: Iterable[str], previous: Table | None = None) -> Table:
    """Balanced by the sum of weights. Orphans go largest first to the emptiest; then the fullest give."""
    ordered = canonical(slots)
    if not ordered:
        return Table(ordered, np.full(len(weights), UNOWNED, dtype=np.int32))
    if previous is not None and previous.slots == ordered:
        return previous
    owner = _cut(weights, len(ordered)) if previous is None else _survivors(previous, ordered)
    loads = np.bincount(owner[owner >= 0], weights[owner >= 0], minlength=len(ordered)).astype(np.int64)
    _place_orphans(owner, weights, loads)
    _level(owner, weights, loads)
    return Table(ordered, owner)


def _cut(weights: NDArray[np.int64], width: int) -> NDArray[np.int32]:
    """Units in hash order, cut where the running sum passes each slot's share: off by less than one unit."""
    ends = np.cumsum(weights)
    total = max(int(ends[-1]), 1) if len(ends) else 1
    middles = ends.astype(np.float64) - weights / 2
    return np.minimum(middles / total * width, width - 1).astype(np.int32)


def _survivors(previous: Table, slots: tuple[str, ...]) -> NDArray[np.int32]:
    row_of = {slot: row for row, slot in enumerate(slots)}
    renumbered = np.array([row_of.get(slot, UNOWNED) for slot in previous.slots] or [UNOWNED], dtype=np.int32)
    return np.where(previous.owner >= 0, renumbered[previous.owner], UNOWNED).astype(np.int32)


def _place_orphans(owner: NDArray[np.int32], weights: NDArray[np.int64], loads: NDArray[np.int64]) -> None:
    orphans = np.flatnonzero(owner < 0)
    orphans = orphans[np.argsort(-weights[orphans], kind="stable")]
    emptiest = [(int(load), row) for row, load in enumerate(loads)]
    heapq.heapify(emptiest)
    for unit in orphans.tolist():
        load, row = emptiest[0]
        load += int(weights[unit])
        heapq.heapreplace(emptiest, (load, row))
        owner[unit], loads[row] = row, load


def _level(owner: NDArray[np.int32], weights: NDArray[np.int64], loads: NDArray[np.int64]) -> None:
    """Moves one unit at a time from the fullest slot to the emptiest until they differ little, or cannot differ less.

    Ends because every move lowers the sum of squared loads: the unit is smaller than the difference it bridges. When
    the fullest has no such unit, the difference is at most its smallest unit, and no single move would help.
    """
    enough = min(int(weights.max(initial=0)), 2 * int(weights.mean()) if len(weights) else 0)
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(loads) + 1))
    held: dict[int, set[int]] = {}
    while True:
        fullest, emptiest = int(loads.argmax()), int(loads.argmin())
        difference = int(loads[fullest] - loads[emptiest])
        if difference <= enough:
            return
        for row in (fullest, emptiest):
            if row not in held:
                held[row] = set(order[starts[row] : starts[row + 1]].tolist())
        unit = _fitting(held[fullest], weights, difference)
        if unit is None:
            return
        held[fullest].remove(unit)
        held[emptiest].add(unit)
        owner[unit] = emptiest
        loads[fullest] -= weights[unit]
        loads[emptiest] += weights[unit]


def _fitting(units: set[int], weights: NDArray[np.int64], difference: int) -> int | None:
    """The unit that brings two slots closest together; the lowest-numbered among equals, so that all agree."""
    candidates = np.array(sorted(units), dtype=np.int64)
    sizes = weights[candidates]
    movable = (sizes > 0) & (sizes < difference)
    if not movable.any():
        return None
    apart = np.where(movable, np.abs(2 * sizes - difference), np.iinfo(np.int64).max)
    return int(candidates[apart.argmin()])
