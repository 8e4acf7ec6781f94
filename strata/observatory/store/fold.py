"""Points become buckets of equal count, in order of step and time: what `sql.curves` has the engine do by window
functions, in a fraction of its time (benchmarks/observatory.py). Pure.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.observatory.live.decimate import Buckets, Floats, Ints, bucketize, bucketize_evenly
from strata.observatory.store.table import Column, Table, words_of

__all__ = ["fold"]

_POINT = ("unit", "step", "ms", "value")
_MOST_MARKS = 1 << 21  # a table of so many is filled faster than as many numbers are sorted


def fold(points: Table, buckets: int, only: Mapping[str, Any] | None = None) -> Table:
    """The columns of `_POINT` are the point; by the others series are told apart. With `only`, all points are of that
    one, whose key and unit it is. A row per bucket, series by series in order of their keys, with the columns of
    `sql.curves`."""
    if points.num_rows == 0:
        return Table({})
    steps, times, values = _ints(points["step"]), _ints(points["ms"]), points["value"].to_numpy()
    if only is not None:
        return _fold_one(steps, times, values, buckets, only)
    keys = [name for name in points.columns if name not in _POINT]
    heads, owners = _series(points.only([*keys, "unit"]), keys)
    order = _order(owners, steps, times)
    if order is not None:
        owners, steps, times, values = owners[order], steps[order], times[order], values[order]
    totals = np.bincount(owners)
    widths = np.maximum(1, -(-totals // buckets))
    counts = -(-totals // widths)
    owner_of = np.repeat(np.arange(len(totals)), counts)
    places = np.arange(len(owner_of)) - (np.cumsum(counts) - counts)[owner_of]
    starts = (np.cumsum(totals) - totals)[owner_of] + places * widths[owner_of]
    made = bucketize(steps, times, values, starts)
    return _with_columns(heads.take(owner_of), made, starts, steps, times, values)


def _fold_one(steps: Ints, times: Ints, values: Floats, buckets: int, only: Mapping[str, Any]) -> Table:
    if not (steps[1:] > steps[:-1]).all():
        order = np.lexsort((times, steps))
        steps, times, values = steps[order], times[order], values[order]
    width = max(1, -(-len(values) // buckets))
    starts = np.arange(0, len(values), width)
    made = bucketize_evenly(steps, times, values, width)
    every = np.zeros(len(starts), np.int64)
    heads = {
        name: words_of([value], every) if isinstance(value, str) else Column.of(every + value)
        for name, value in only.items()
    }
    return _with_columns(Table(heads), made, starts, steps, times, values)


def _with_columns(heads: Table, made: Buckets, starts: Ints, steps: Ints, times: Ints, values: Floats) -> Table:
    ends = np.append(starts[1:], len(values)) - 1
    columns: dict[str, NDArray[Any]] = {name: np.ascontiguousarray(made[name]) for name in made.dtype.names or ()}
    columns |= {"sfirst": steps[starts], "tfirst": np.minimum.reduceat(times, starts)}
    columns |= {"vlast": values[ends], "slast": steps[ends], "tlast": times[ends]}
    return Table(heads.columns | Table.of(columns).columns)


def _series(named: Table, keys: list[str]) -> tuple[Table, Ints]:
    """Each series once, in order of the keys, with a unit; and whose each row is, as a place among them."""
    owners: Ints = np.zeros(named.num_rows, np.int64)
    for name in keys:
        places = _places(named[name])
        if (count := int(places.max()) + 1) > 1:
            owners = _packed(owners * count + places)
    firsts = np.zeros(int(owners.max()) + 1, np.int64)
    firsts[owners[::-1]] = np.arange(len(owners))[::-1]
    return named.take(firsts), owners


def _places(column: Column) -> Ints:
    """Of each value its place among all of them, in their order."""
    if column.words is None:
        return _packed(_ints(column))
    ranks = np.zeros(len(column.words), np.int64)
    ranks[sorted(range(len(column.words)), key=column.words.__getitem__)] = np.arange(len(column.words))
    places: Ints = ranks[column.values]
    return places


def _packed(numbers: Ints) -> Ints:
    """The same order without gaps, from 0 on."""
    low = numbers.min()
    marks = numbers - low
    if (most := int(marks.max())) < _MOST_MARKS:
        there = np.zeros(most + 1, np.bool_)
        there[marks] = True
        packed: Ints = (np.cumsum(there) - 1)[marks]
    else:
        packed = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return packed


def _order(owners: Ints, steps: Ints, times: Ints) -> Ints | None:
    """Where each row belongs; None when they came in order, as parts of the table mostly do."""
    same, ahead = owners[1:] == owners[:-1], owners[1:] > owners[:-1]
    forward = (steps[1:] > steps[:-1]) | ((steps[1:] == steps[:-1]) & (times[1:] >= times[:-1]))
    if (ahead | (same & forward)).all():
        return None
    order: Ints = np.lexsort((times, steps, owners))
    return order


def _ints(column: Column) -> Ints:
    numbers: Ints = column.to_numpy().astype(np.int64, copy=False)
    return numbers
