"""Columnar batches: a dict of NumPy arrays of equal length. Here they are cut, joined and shuffled; nothing is read.

Values of unequal length (texts, bytes, ragged lists) are object arrays, one Python value per row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "Columns", "join", "num_rows", "object_array", "size_of", "take"]

Columns: TypeAlias = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """What a reader gives back for one block. `kept` lists the rows that are there when bad ones were skipped."""

    columns: Columns
    kept: NDArray[np.int64] | None = None


def num_rows(columns: Mapping[str, NDArray[Any]]) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def take(columns: Columns, rows: "NDArray[np.int64] | NDArray[np.bool_] | slice") -> Columns:
    return {name: values[rows] for name, values in columns.items()}


def object_array(values: Sequence[Any]) -> NDArray[np.object_]:
    """One cell per value, also where the values are arrays of equal length (which np.array would stack)."""
    array = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        array[row] = value
    return array


def join(parts: Sequence[Columns], order: NDArray[np.int64] | None = None) -> Columns:
    """The parts one below the other; with `order`, row i of the result is row order[i] of them. One copy per column."""
    if len(parts) == 1:
        return parts[0] if order is None else take(parts[0], order)
    names = parts[0].keys()
    return {name: _joined([part[name] for part in parts], order) for name in names}


def _joined(arrays: list[NDArray[Any]], order: NDArray[np.int64] | None) -> NDArray[Any]:
    if len({array.shape[1:] for array in arrays}) > 1:
        # Lists that are equally long inside one block but not across blocks: one cell per row for all of them.
        arrays = [array if array.dtype == object else object_array(list(array)) for array in arrays]
    if order is None:
        return np.concatenate(arrays)
    total = sum(len(array) for array in arrays)
    joined = np.empty((total, *arrays[0].shape[1:]), dtype=np.result_type(*{array.dtype for array in arrays}))
    places = np.empty(total, dtype=np.int64)
    places[order] = np.arange(total)
    start = 0
    # Scattered straight into place: a concatenation first would copy everything twice.
    for array in arrays:
        joined[places[start : start + len(array)]] = array
        start += len(array)
    return joined


def size_of(columns: Columns) -> int:
    """Bytes held, texts and bytes included; ragged lists by their arrays."""
    total = 0
    for values in columns.values():
        total += values.nbytes
        if values.dtype == object:
            total += sum(_value_size(value) for value in values)
    return total


def _value_size(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    return len(value) if isinstance(value, str | bytes) else 0
