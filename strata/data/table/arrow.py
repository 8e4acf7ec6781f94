"""The only file that imports pyarrow, on first use. Arrow arrays leave it as NumPy arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from strata.data.table.columns import Columns, object_array
from strata.errors import DataError, MissingExtra

__all__ = ["arrow", "schema_text", "to_columns"]


def arrow(module: str = "") -> Any:
    """pyarrow, or one of its modules: 'parquet', 'csv', 'json'."""
    try:
        if module == "parquet":
            import pyarrow.parquet as found
        elif module == "csv":
            import pyarrow.csv as found
        elif module == "json":
            import pyarrow.json as found
        else:
            import pyarrow as found
    except ImportError as error:
        raise MissingExtra("pyarrow", "data") from error
    return found


def schema_text(schema: Any) -> dict[str, str]:
    """Column → type as text: what is compared between files and shown to people."""
    return {field.name: str(field.type) for field in schema}


def to_columns(table: Any, file: str) -> Columns:
    """Numbers and lists of equal length without a copy where Arrow allows it; everything else as objects."""
    return {name: _column(table.column(name), name, file) for name in table.column_names}


def _column(column: Any, name: str, file: str) -> NDArray[Any]:
    types = arrow().types
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if types.is_integer(kind) or types.is_boolean(kind):
        if array.null_count:
            row = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(
                f"{file}: column {name!r} is {kind} and has nulls, first in row {row} of the block",
                file=file,
                row=row,
                hint="NumPy integers cannot be null: fill them in, or store the column as floats.",
            )
        return _values(array)
    if types.is_fixed_size_list(kind) and _is_number(kind.value_type) and not array.null_count:
        return _values(array.flatten()).reshape(len(array), kind.list_size)
    if (types.is_list(kind) or types.is_large_list(kind)) and _is_number(kind.value_type):
        return _lists(array)
    if types.is_floating(kind) or types.is_temporal(kind):
        return _values(array)
    return object_array(array.to_pylist())


def _values(array: Any) -> NDArray[Any]:
    """Numbers past Arrow's own conversion, which imports pandas wherever it is installed: 0.4 s of CPU before the first
    batch of a process."""
    if len(array) and not array.null_count and _is_number(array.type):
        return np.from_dlpack(array)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _is_number(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind))


def _lists(array: Any) -> NDArray[Any]:
    """A matrix when all lists are equally long, else one array per row."""
    values = _values(array.flatten())
    lengths = _values(array.value_lengths().fill_null(0) if array.null_count else array.value_lengths())
    if len(lengths) and not array.null_count and lengths[0] and np.all(lengths == lengths[0]):
        return values.reshape(len(lengths), int(lengths[0]))
    return object_array(np.split(values, np.cumsum(lengths)[:-1]) if len(lengths) else [])
