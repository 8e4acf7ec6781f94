"""A run's raw points as a CSV or Parquet file, metric by metric, so that memory stays small. Small metrics are asked
for together: ten thousand questions of two points each took minutes.
"""

import asyncio
import csv
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
_GATHERED_POINTS, _GATHERED_METRICS = 200_000, 1_000  # of one question about several metrics

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
    sizes: Counter[str] = Counter()
    for row in (await store.query(sql, parameters)).to_rows():
        if only is None or row["metric"] in only:
            sizes[row["metric"]] += row["points"]
    if not sizes:
        of = f" of {', '.join(only)[:200]}" if only else ""
        hint = "GET /api/outline lists its metrics." if only else "`strata runs` and GET /api/runs list what there is."
        raise NotFound(f"the store has no points{of} of run {run_id!r}", hint=hint)
    writer: _Writer = _Csv(target) if kind == "csv" else _Parquet(target)
    try:
        for metrics in _gathered(sizes):
            asked = [{"runs": [run], "metrics": metrics, "to_step": upto} for run, upto in runs.items()]
            found = [await store.query(*raw_points(where, _MAX_ROWS, which, by_metric=True)) for where in asked]
            await asyncio.to_thread(_write_by_metric, writer, metrics, found)
    finally:
        writer.close()


def _gathered(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Metrics in order, as many at a time as have few points together."""
    metrics: list[str] = []
    num_points = 0
    for metric in sorted(sizes):
        is_full = num_points + sizes[metric] > _GATHERED_POINTS or len(metrics) >= _GATHERED_METRICS
        if metrics and is_full:
            yield metrics
            metrics, num_points = [], 0
        metrics.append(metric)
        num_points += sizes[metric]
    yield metrics


def _write_by_metric(writer: "_Writer", metrics: Sequence[str], found: Sequence[Table]) -> None:
    """What each run has of the first metric, then of the next. Each has its own in their order."""
    if len(found) == 1:
        writer.write(found[0])
        return
    names = [table["metric"].to_list() for table in found]
    for metric in metrics:
        for table, of in zip(found, names, strict=True):
            writer.write(table.take(slice(bisect_left(of, metric), bisect_right(of, metric))))


class _Writer(Protocol):
    def write(self, table: Table) -> None: ...

    def close(self) -> None: ...


class _Csv:
    """Written here, not by the light engine, whose texts lose the zeros of an exponent: 1e308 becomes 1e38."""

    def __init__(self, target: Path) -> None:
        self._file = target.open("w", encoding="utf-8", errors="backslashreplace", newline="")
        self._lines = csv.writer(self._file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        self._lines.writerow(_COLUMNS)

    def close(self) -> None:
        self._file.close()

    def write(self, table: Table) -> None:
        for first in range(0, table.num_rows, _ROWS_AT_ONCE):
            part = table.take(slice(first, first + _ROWS_AT_ONCE)).columns.values()
            self._lines.writerows(zip(*(column.to_list() for column in part), strict=True))


class _Parquet:
    def __init__(self, target: Path) -> None:
        from strata.data.table.arrow import arrow  # what reads datasets is no part of an observatory otherwise

        self._arrow, parquet = arrow(), arrow("parquet")
        self._schema = self._arrow.schema([(name, getattr(self._arrow, kind)()) for name, kind in _COLUMNS.items()])
        self._writer = parquet.ParquetWriter(target, self._schema, compression="zstd")

    def close(self) -> None:
        self._writer.close()

    def write(self, table: Table) -> None:
        if table.num_rows:
            columns = zip(table.columns.values(), self._schema, strict=True)
            arrays = [self._array(column).cast(field.type) for column, field in columns]
            self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))

    def _array(self, column: Column) -> Any:
        values = self._arrow.array(np.require(column.values, requirements="A"))  # it may lie anywhere in an answer
        if column.words is None:
            return values
        return self._arrow.DictionaryArray.from_arrays(values, column.words)
