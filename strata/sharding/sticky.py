"""The default policy: exact balance (max − min ≤ 1) and the least possible movement, given the table before.

Cost at 1,000 slots × 100,000 units: see benchmarks/results/sharding.md. The first table deals the units, which are in
hash order, to the slots in hash order: it does not depend on who joined first. Later ones depend on the table before.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from strata.sharding.table import UNOWNED, Table, canonical

__all__ = ["deal", "plan_sticky"]


def plan_sticky(num_units: int, slots: Iterable[str], previous: Table | None = None) -> Table:
    """The table for these slots that moves least from `previous`; without one, the dealt table."""
    ordered = canonical(slots)
    if previous is None or not ordered or not any(previous.row_of(slot) >= 0 for slot in ordered):
        return deal(num_units, ordered)
    assert previous.num_units == num_units
    if previous.slots == ordered:
        return previous
    return _rebalance(previous, ordered)


def deal(num_units: int, slots: tuple[str, ...]) -> Table:
    """Round-robin in hash order: unit u goes to slot u mod W."""
    width = len(slots)
    if not width:
        return Table(slots, np.full(num_units, UNOWNED, dtype=np.int32))
    units = np.arange(num_units, dtype=np.int32)
    grid = np.arange(-(-num_units // width) * width, dtype=np.int32).reshape(-1, width).T.ravel()
    counts = np.full(width, num_units // width, dtype=np.int64)
    counts[: num_units % width] += 1
    return Table(slots, units % np.int32(width), grid[grid < num_units], _offsets(counts))


def _rebalance(previous: Table, slots: tuple[str, ...]) -> Table:
    total = previous.num_units
    before = np.array([previous.row_of(slot) for slot in slots], dtype=np.int64)
    stays = before >= 0
    counts_before = previous.counts()
    held = np.where(stays, counts_before[before], 0)
    targets = _targets(held, total)

    # Rows that are gone release everything; rows above target release their tail. Nothing else moves.
    released = counts_before.copy()
    released[before[stays]] = np.maximum(held - targets, 0)[stays]
    positions = _ranges(previous.offsets[1:] - released, released)
    pool = np.sort(previous.order[positions])
    receivers = np.repeat(np.arange(len(slots), dtype=np.int32), np.maximum(targets - held, 0))

    renumbered = np.full(len(previous.slots), UNOWNED, dtype=np.int32)
    renumbered[before[stays]] = np.flatnonzero(stays)
    owner = renumbered[previous.owner]
    owner[pool] = receivers

    # Survivors keep their relative order (both tables are in hash order of slots), so the old index minus the released
    # entries is already sorted by (row, unit), and the pool is merged in without sorting everything again.
    kept = np.delete(previous.order, positions)
    kept_keys = owner[kept] * np.int64(total) + kept
    order = np.insert(kept, np.searchsorted(kept_keys, receivers * np.int64(total) + pool), pool)
    return Table(slots, owner, order, _offsets(targets))


def _targets(held: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Floor or ceiling of the mean; the ceilings go to those who hold most already, so that fewest units move."""
    targets = np.full(len(held), total // len(held), dtype=np.int64)
    targets[np.argsort(-held, kind="stable")[: total % len(held)]] += 1
    return targets


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)))


def _ranges(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """All integers of the ranges [start, start + length), one after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)
