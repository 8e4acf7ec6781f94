"""Points become buckets of equal count, in order of step and time: what `sql.curves` has the engine do by window
functions, in a fraction of its time (benchmarks/observatory.py). Pure.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strata.observatory.live.decimate import Buckets, Floats, Ints, bucketize, bucketize_evenly

__all__ = ["fold"]

_POINT = ("unit", "step", "ms", "value")


def fold(points: pa.Table, buckets: int, only: Mapping[str, Any] | None = None) -> pa.Table:
    """The columns of `_POINT` are the point; by the others series are told apart. With `only`, all points are of that
    one, whose key and unit it is. A row per bucket, series by series in order of their keys, with the columns of
    `sql.curves`."""
    if points.num_rows == 0:
        return points.select([])
    steps, times, values = _ints(points["step"]), _ints(points["ms"]), points["value"].to_numpy()
    if only is not None:
        return _fold_one(steps, times, values, buckets, only)
    keys = [name for name in points.column_names if name not in _POINT]
    heads, owners = _series(points.select([*keys, "unit"]), keys)
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
    return _with_columns(heads.take(pa.array(owner_of)), made, starts, steps, times, values)


def _fold_one(steps: Ints, times: Ints, values: Floats, buckets: int, only: Mapping[str, Any]) -> pa.Table:
    if not (steps[1:] > steps[:-1]).all():
        order = np.lexsort((times, steps))
        steps, times, values = steps[order], times[order], values[order]
    width = max(1, -(-len(values) // buckets))
    starts = np.arange(0, len(values), width)
    made = bucketize_evenly(steps, times, values, width)
    heads = pa.Table.from_pylist([dict(only)] * len(starts))
    return _with_columns(heads, made, starts, steps, times, values)


def _with_columns(heads: pa.Table, made: Buckets, starts: Ints, steps: Ints, times: Ints, values: Floats) -> pa.Table:
    ends = np.append(starts[1:], len(values)) - 1
    columns: dict[str, npt.NDArray[Any]] = {name: np.ascontiguousarray(made[name]) for name in made.dtype.names or ()}
    columns |= {"sfirst": steps[starts], "tfirst": np.minimum.reduceat(times, starts)}
    columns |= {"vlast": values[ends], "slast": steps[ends], "tlast": times[ends]}
    for name, column in columns.items():
        heads = heads.append_column(name, pa.array(column))
    return heads


def _series(named: pa.Table, keys: list[str]) -> tuple[pa.Table, Ints]:
    """Each series once, in order of the keys, with a unit; and whose each row is, as a place among them."""
    owners: Ints = np.zeros(named.num_rows, np.int64)
    for name in keys:
        words = named[name].dictionary_encode().unify_dictionaries().combine_chunks()
        if len(words.dictionary) > 1:
            both = owners * len(words.dictionary) + words.indices.to_numpy()
            owners = pa.array(both).dictionary_encode().indices.to_numpy().astype(np.int64)
    firsts = np.zeros(int(owners.max()) + 1, np.int64)
    firsts[owners[::-1]] = np.arange(len(owners))[::-1]
    heads = _plain(named.take(pa.array(firsts)))
    numbered = heads.append_column("place", pa.array(np.arange(heads.num_rows)))
    ordered = numbered.sort_by([(name, "ascending") for name in keys])
    ranks = np.empty(heads.num_rows, np.int64)
    ranks[ordered["place"].to_numpy()] = np.arange(heads.num_rows)
    return ordered.drop_columns("place"), ranks[owners]


def _plain(table: pa.Table) -> pa.Table:
    """Words instead of places in a dictionary, and texts instead of bytes, whatever they are."""
    for place, field in enumerate(table.schema):
        column = table.column(place).combine_chunks()
        if pa.types.is_dictionary(field.type):
            column = column.dictionary.take(column.indices)
        if pa.types.is_binary(column.type):
            table = table.set_column(place, field.name, column.view(pa.string()))
    return table


def _order(owners: Ints, steps: Ints, times: Ints) -> Ints | None:
    """Where each row belongs; None when they came in order, as parts of the table mostly do."""
    same, ahead = owners[1:] == owners[:-1], owners[1:] > owners[:-1]
    forward = (steps[1:] > steps[:-1]) | ((steps[1:] == steps[:-1]) & (times[1:] >= times[:-1]))
    if (ahead | (same & forward)).all():
        return None
    order: Ints = np.lexsort((times, steps, owners))
    return order


def _ints(column: pa.ChunkedArray) -> Ints:
    numbers: Ints = column.to_numpy().astype(np.int64, copy=False)
    return numbers
