"""Reading series back from the store: whole runs into the cache, and windows of them for a zoomed chart."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from strata.observatory.cache import NUM_BUCKETS, SeriesCache, SeriesStats
from strata.observatory.decimate import BUCKET, Buckets
from strata.observatory.ingest.batch import decode
from strata.observatory.live import LiveView, NewPoints
from strata.observatory.series import SeriesTable
from strata.observatory.spool import Spool
from strata.observatory.store.base import Store
from strata.observatory.store.sql import curves, series_of
from strata.observatory.store.writer import StoreWriter
from strata.types.metrics import SeriesKey

__all__ = ["History", "StoredCurve", "read_curves"]

_log = logging.getLogger(__name__)
_RUNS_AT_ONCE = 8
_KEY = ("run_id", "metric", "host", "rank", "device")


@dataclass(frozen=True, slots=True)
class StoredCurve:
    """One series as the store has it, in buckets."""

    key: SeriesKey
    unit: str
    buckets: Buckets
    stats: SeriesStats


async def read_curves(store: Store, where: Mapping[str, Any], buckets: int) -> list[StoredCurve]:
    """Every series that `where` selects, each in at most `buckets` buckets."""
    sql, parameters = curves(where, buckets)
    return list(_curves_of(await store.query(sql, parameters)))


class History:
    """Loads runs into the live cache so that cache = store + what the spool still holds, to the point."""

    def __init__(
        self, store: Store, writer: StoreWriter, spool: Spool, series: SeriesTable, cache: SeriesCache
    ) -> None:
        self._store = store
        self._writer = writer
        self._spool = spool
        self._series = series
        self._cache = cache

    async def load(self, live: LiveView, runs: Sequence[str]) -> None:
        """Replaces these runs in the cache. Runs for which there is no room stay cold."""
        for start in range(0, len(runs), _RUNS_AT_ONCE):
            await self._load_some(live, list(runs[start : start + _RUNS_AT_ONCE]))
            await asyncio.sleep(0)

    async def _load_some(self, live: LiveView, runs: list[str]) -> None:
        async with self._writer.quiet() as stored_end:
            sql, parameters = series_of(runs)
            counted = (await self._store.query(sql, parameters)).to_pylist()
            found = await read_curves(self._store, {"runs": runs}, NUM_BUCKETS)
            # No await from here on: nothing can come between the counts, the rows and the cache.
            for row in counted:
                number = self._series.intern(SeriesKey(*(row[name] for name in _KEY)), row["unit"])
                self._series.set_stored(number, row["points"])
            self._fill(live, runs, found, stored_end)

    def _fill(self, live: LiveView, runs: list[str], found: list[StoredCurve], stored_end: int) -> None:
        # What was taken but not ticked may be in the store already; shown now, it is replaced like the rest.
        live.tick()
        later = self._later(live, stored_end)
        by_run: dict[str, list[StoredCurve]] = {run_id: [] for run_id in runs}
        for curve in found:
            by_run[curve.key.run_id].append(curve)
        for run_id, mine in by_run.items():
            missing = [curve for curve in mine if not self._cache.has(self._series.intern(curve.key, curve.unit))]
            if len(missing) > self._cache.num_free and not live.make_room(len(missing)):
                live.cold.add(run_id)
                continue
            live.replace(run_id, partial(self._load_rows, mine), _only(later, self._series.of_run(run_id)))

    def _load_rows(self, found: list[StoredCurve]) -> None:
        for curve in found:
            self._cache.load(self._series.intern(curve.key, curve.unit), curve.buckets, curve.stats)

    def _later(self, live: LiveView, stored_end: int) -> NewPoints | None:
        """Points that the live view has shown already but the store did not have when it was asked."""
        end = live.applied_offset
        if end <= stored_end:
            return None
        parts = []
        for record in self._spool.read(stored_end, limit=end, max_bytes=1 << 62):
            columns = decode(record.payload)
            if columns.num_points:
                numbers = self._series.intern_all(columns.heads)
                parts.append(NewPoints(numbers[columns.series], columns.steps, columns.times, columns.values))
        return NewPoints.joined(parts) if parts else None


def _only(points: NewPoints | None, numbers: list[int]) -> NewPoints | None:
    if points is None:
        return None
    chosen = np.isin(points.numbers, numbers)
    return NewPoints(points.numbers[chosen], points.steps[chosen], points.times[chosen], points.values[chosen])


def _curves_of(table: pa.Table) -> Iterator[StoredCurve]:
    if table.num_rows == 0:
        return
    columns = {name: table[name].to_numpy() for name in table.column_names if name not in (*_KEY, "unit")}
    keys = list(zip(*(table[name].to_pylist() for name in _KEY), strict=True))
    units = table["unit"]
    starts = [0, *(place for place in range(1, len(keys)) if keys[place] != keys[place - 1])]
    buckets = np.zeros(len(keys), BUCKET)
    empty = columns["bad"] == columns["n"]
    for name, fallback in (("smin", "sfirst"), ("smax", "sfirst"), ("tmin", "tfirst"), ("tmax", "tfirst")):
        buckets[name] = np.where(empty, columns[fallback], columns[name])
    buckets["vmin"] = np.where(empty, np.inf, columns["vmin"])
    buckets["vmax"] = np.where(empty, -np.inf, columns["vmax"])
    buckets["n"], buckets["bad"] = columns["n"], columns["bad"]
    for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
        mine = buckets[start:end]
        stats = SeriesStats(
            total_points=int(mine["n"].sum()),
            nan_count=int(mine["bad"].sum()),
            last_step=int(columns["slast"][end - 1]),
            last_time=int(columns["tlast"][end - 1]),
            last_value=float(columns["vlast"][end - 1]),
        )
        yield StoredCurve(SeriesKey(*keys[start]), units[start].as_py(), mine, stats)
