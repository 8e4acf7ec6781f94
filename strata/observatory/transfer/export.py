"""A run's raw points as a CSV or Parquet file, metric by metric, so that memory stays small."""

import asyncio
import csv
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from strata.errors import NotFound
from strata.observatory.store.base import Store
from strata.observatory.store.sql import raw_points, series_of
from strata.observatory.store.superseded import Which
from strata.observatory.store.table import Column, Table

__all__ = ["Format", "export_run"]

Format = Literal["csv", "parquet"]
_MAX_ROWS = 20_000_000
_ROWS_AT_ONCE = 50_000  # as Python's own values they are many times larger

# In the order in which `raw_points` has them, with Arrow's types.
_COLUMNS = {"run_id": "string", "metric": "string", "host": "string", "rank": "uint32", "device": "uint16"}
_COLUMNS |= {"unit": "string", "step": "uint64", "event_time_ms": "int64", "value": "float64", "attempt": "uint32"}


async def export_run(
    store: Store,
    runs: Mapping[str, int | None],
    target: Path,
    kind: Format,
    which: Which = "all",
    only: Sequence[str] | None = None,
) -> None:
    """Writes the points of the runs that the store holds, each up to its step (None: all), of some metrics or of all.
    The last run is the one that was asked for, those before it are what it was forked from. Raises NotFound when there
    are none, and MissingExtra for Parquet without pyarrow."""
    *_, run_id = runs
    sql, parameters = series_of(list(runs))
    metrics = sorted({row["metric"] for row in (await store.query(sql, parameters)).to_rows()})
    if only is not None:
        metrics = [metric for metric in metrics if metric in only]
    if not metrics:
        of = f" of {', '.join(only)[:200]}" if only else ""
        hint = "GET /api/outline lists its metrics." if only else "`strata runs` and GET /api/runs list what there is."
        raise NotFound(f"the store has no points{of} of run {run_id!r}", hint=hint)
    writer: _Writer = _Csv(store, target) if kind == "csv" else _Parquet(store, target)
    try:
        for metric, (run, upto) in product(metrics, runs.items()):
            await writer.add(*raw_points({"runs": [run], "metric": metric, "to_step": upto}, _MAX_ROWS, which))
    finally:
        writer.close()


class _Writer(Protocol):
    async def add(self, sql: str, parameters: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


class _Csv:
    """Written here, not by the light engine, whose texts lose the zeros of an exponent: 1e308 becomes 1e38."""

    def __init__(self, store: Store, target: Path) -> None:
        self._store = store
        self._file = target.open("w", encoding="utf-8", errors="backslashreplace", newline="")
        self._lines = csv.writer(self._file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        self._lines.writerow(_COLUMNS)

    async def add(self, sql: str, parameters: Mapping[str, Any]) -> None:
        await asyncio.to_thread(self._write, await self._store.query(sql, parameters))

    def close(self) -> None:
        self._file.close()

    def _write(self, table: Table) -> None:
        for first in range(0, table.num_rows, _ROWS_AT_ONCE):
            part = table.take(slice(first, first + _ROWS_AT_ONCE)).columns.values()
            self._lines.writerows(zip(*(column.to_list() for column in part), strict=True))


class _Parquet:
    def __init__(self, store: Store, target: Path) -> None:
        from strata.data.table.arrow import arrow  # what reads datasets is no part of an observatory otherwise

        self._store = store
        self._arrow, parquet = arrow(), arrow("parquet")
        self._schema = self._arrow.schema([(name, getattr(self._arrow, kind)()) for name, kind in _COLUMNS.items()])
        self._writer = parquet.ParquetWriter(target, self._schema, compression="zstd")

    async def add(self, sql: str, parameters: Mapping[str, Any]) -> None:
        table = await self._store.query(sql, parameters)
        if table.num_rows:
            await asyncio.to_thread(self._write, list(table.columns.values()))

    def close(self) -> None:
        self._writer.close()

    def _write(self, columns: Sequence[Column]) -> None:
        arrays = [self._array(column).cast(field.type) for column, field in zip(columns, self._schema, strict=True)]
        self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))

    def _array(self, column: Column) -> Any:
        values = self._arrow.array(np.require(column.values, requirements="A"))  # it may lie anywhere in an answer
        if column.words is None:
            return values
        return self._arrow.DictionaryArray.from_arrays(values, column.words)
