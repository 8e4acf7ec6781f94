"""A run's raw points as a CSV or Parquet file, metric by metric, so that memory stays small."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from strata.errors import NotFound
from strata.observatory.store.base import Store
from strata.observatory.store.sql import raw_points, series_of
from strata.observatory.store.superseded import Which

__all__ = ["Format", "export_run"]

Format = Literal["csv", "parquet"]
_MAX_ROWS = 20_000_000

_SCHEMA = pa.schema(
    {
        "run_id": pa.string(),
        "metric": pa.string(),
        "host": pa.string(),
        "rank": pa.uint32(),
        "device": pa.uint16(),
        "unit": pa.string(),
        "step": pa.uint64(),
        "event_time_ms": pa.int64(),
        "value": pa.float64(),
        "attempt": pa.uint32(),
    }
)


async def export_run(
    store: Store,
    runs: Mapping[str, int | None],
    target: Path,
    kind: Format,
    which: Which = "all",
    only: Sequence[str] | None = None,
) -> int:
    """Writes the points of the runs that the store holds, each up to its step (None: all), of some metrics or of all;
    returns how many. The last run is the one that was asked for, those before it are what it was forked from. Raises
    NotFound when there are none."""
    *_, run_id = runs
    sql, parameters = series_of(list(runs))
    metrics = sorted({row["metric"] for row in (await store.query(sql, parameters)).to_pylist()})
    if only is not None:
        metrics = [metric for metric in metrics if metric in only]
    if not metrics:
        of = f" of {', '.join(only)[:200]}" if only else ""
        raise NotFound(f"the store has no points{of} of run {run_id!r}", hint="GET /api/outline lists its metrics.")
    count = 0
    writer: Any = _open(target, kind)
    try:
        for metric, (run, upto) in product(metrics, runs.items()):
            sql, parameters = raw_points({"runs": [run], "metric": metric, "to_step": upto}, _MAX_ROWS, which)
            table = (await store.query(sql, parameters)).rename_columns(_SCHEMA.names)
            await asyncio.to_thread(writer.write_table, table.cast(_SCHEMA))
            count += table.num_rows
    finally:
        writer.close()
    return count


def _open(target: Path, kind: Format) -> Any:
    if kind == "csv":
        return pa.csv.CSVWriter(target, _SCHEMA)
    return pa.parquet.ParquetWriter(target, _SCHEMA, compression="zstd")
