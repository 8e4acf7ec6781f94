"""Rows that others wrote: which of the store's rows of a series are new to us. Pure; the poller asks the store.

The rollup counts every row exactly, so the number of new rows is known before any of them is looked for. Event times
come from the writers' own clocks and may be wrong, so they only narrow the search.
"""

import math
from collections import Counter
from dataclasses import dataclass, field

__all__ = ["OVERLAP_MS", "Recent", "Row", "pick_new"]

OVERLAP_MS = 60_000

Row = tuple[int, int, float]  # step, time in ms, value


@dataclass(slots=True)
class Recent:
    """The last rows of a series that others write, to tell them apart from what the next poll finds."""

    rows: Counter[Row] = field(default_factory=Counter)
    last_ms: int = 0

    def add(self, rows: list[Row]) -> None:
        self.rows.update(map(comparable, rows))
        self.last_ms = max([self.last_ms, *(time for _, time, _ in rows)])
        oldest = self.last_ms - 2 * OVERLAP_MS
        for row in [row for row in self.rows if row[1] < oldest]:
            del self.rows[row]


def comparable(row: Row) -> Row:
    """NaN is equal to nothing, and the cache keeps no Inf: both get one stand-in."""
    step, time, value = row
    return (step, time, value if math.isfinite(value) else math.inf)


def pick_new(found: list[Row], known: Counter[Row] | None, last_ms: int, expected: int) -> list[Row] | None:
    """The `expected` new ones among `found`, or None when they cannot be told apart with certainty."""
    if known is not None:
        left = Counter(known)
        fresh = []
        for row in found:
            name = comparable(row)
            if left[name] > 0:
                left[name] -= 1
            else:
                fresh.append(row)
        if len(fresh) == expected:
            return fresh
    newer = [row for row in found if row[1] > last_ms]
    return newer if len(newer) == expected else None
