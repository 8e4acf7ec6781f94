"""Reading series back from the store: the newest point of all, curves into the cache, windows for a zoomed chart."""

import asyncio
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strata.errors import StoreUnavailable
from strata.observatory.batch.columns import decode
from strata.observatory.live.cache import NUM_BUCKETS, SeriesCache
from strata.observatory.live.decimate import BUCKET, Buckets
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.tally import SeriesStats
from strata.observatory.live.view import LiveView, NewPoints
from strata.observatory.spool.spool import Spool
from strata.observatory.store.base import Store
from strata.observatory.store.sql import SERIES, newest_series, series_of
from strata.observatory.store.superseded import Which
from strata.observatory.store.table import Table
from strata.observatory.store.writer import StoreWriter
from strata.types.metrics import WORLDS, SeriesKey

__all__ = ["History", "StoredCurve", "read_curves"]

_log = logging.getLogger(__name__)
_SERIES_AT_ONCE = 1000
_SETTLE_S = 3.0
_KEY = ("run_id", "metric", "host", "rank", "device")
_STATS = ("points", "bad", "top_step", "last_ms", "newest", "lowest", "highest")


@dataclass(frozen=True, slots=True)
class StoredCurve:
    """One series as the store has it, in buckets."""

    key: SeriesKey
    unit: str
    buckets: Buckets
    stats: SeriesStats
    attempt: int | None = None  # of superseded points


async def read_curves(store: Store, where: Mapping[str, Any], buckets: int, which: Which = "all") -> list[StoredCurve]:
    """Every series that `where` selects, each in at most `buckets` buckets."""
    return list(_curves_of(await store.curves(where, buckets, which)))


class History:
    """Brings series into the live view so that what it says is store + what the spool still holds, to the point."""

    def __init__(
        self, store: Store, writer: StoreWriter, spool: Spool, series: SeriesTable, cache: SeriesCache
    ) -> None:
        self._store = store
        self._writer = writer
        self._spool = spool
        self._series = series
        self._cache = cache

    async def outline(self, live: LiveView) -> None:
        """Everything in the store becomes known by its name, its count and its newest point; no curve is read."""
        async with self._writer.quiet() as stored_end:
            rows = (await self._store.query(SERIES)).to_rows()
            fenced = live.attempts.fenced_runs
            newest = (await self._store.query(*newest_series(fenced))).to_rows() if fenced else []
            # No await from here on: nothing can come between the counts and the live view.
            live.tick()  # what was taken but not ticked may be in the store already; shown now, it is replaced too
            self._series.forget_hidden(range(len(self._series)))
            tallies = self._counted(rows, newest, set(fenced))
            later = self._later(live, stored_end, None)

            def load() -> None:
                for number, stats in tallies:
                    self._cache.tally.set(number, stats)

            live.replace(list(range(len(self._series))), load, later)
            live.recount(fenced)

    async def fetch(self, live: LiveView, numbers: Sequence[int], keep: Collection[int] = ()) -> None:
        """Puts the curves of these series into the cache; others make room, but none of `keep`."""
        for start in range(0, len(numbers), _SERIES_AT_ONCE):
            await self._fetch_some(live, list(numbers[start : start + _SERIES_AT_ONCE]), keep)
            await asyncio.sleep(0)

    def is_behind(self, live: LiveView) -> bool:
        """Whether the store does not know yet of the last attempt that began."""
        return self._spool.progress.consumed < live.starts_end

    async def _catch_up(self, live: LiveView) -> None:
        try:
            async with asyncio.timeout(_SETTLE_S):
                await self._writer.flushed(live.starts_end)
        except TimeoutError:
            raise StoreUnavailable("the metric store does not know yet which steps were done again") from None

    async def _fetch_some(self, live: LiveView, numbers: list[int], keep: Collection[int]) -> None:
        keys = {self._series.key(number): number for number in numbers}
        runs, metrics = sorted({key.run_id for key in keys}), sorted({key.metric for key in keys})
        if self.is_behind(live):
            await self._catch_up(live)
        async with self._writer.quiet() as stored_end:
            sql, parameters = series_of(runs, metrics)
            counted = (await self._store.query(sql, parameters)).to_rows()
            which: Which = "newest" if any(map(live.attempts.is_fenced, runs)) else "all"
            found = await read_curves(self._store, {"runs": runs, "metrics": metrics}, NUM_BUCKETS, which)
            left = {curve.key: curve.stats.total_points for curve in found}
            # No await from here on, as above.
            live.tick()
            self._series.forget_hidden(numbers)
            for row in counted:
                number = keys.get(_key_of(row))
                if number is not None:
                    self._series.set_stored(number, row["points"])
                    self._series.set_hidden(number, row["points"] - left.get(_key_of(row), 0))
            later = self._later(live, stored_end, numbers)
            mine = [(keys[curve.key], curve) for curve in found if curve.key in keys]

            def load() -> None:
                # A row for each: a series of which the store has nothing yet gets its points from `later`.
                live.make_room(min(len(numbers), self._cache.max_series), keep)
                for number, curve in mine:
                    if not self._cache.load(number, curve.buckets, curve.stats):
                        self._cache.tally.set(number, curve.stats)

            live.replace(numbers, load, later)
            live.recount(filter(live.attempts.is_fenced, runs))

    def _counted(
        self, rows: list[dict[str, Any]], newest: list[dict[str, Any]], fenced: Collection[str]
    ) -> list[tuple[int, SeriesStats]]:
        """What is known of each series now; `newest` is what `rows` say of the runs in `fenced` without superseded
        points."""
        left = {_key_of(row): row for row in newest}
        tallies = []
        for row in rows:
            number = self._series.intern(_key_of(row), row["unit"])
            self._series.set_stored(number, row["points"])
            shown = left.get(_key_of(row)) if row["run_id"] in fenced else row
            self._series.set_hidden(number, row["points"] - (shown["points"] if shown else 0))
            if shown is not None:
                stats = (shown[name] for name in _STATS)
                tallies.append((number, SeriesStats(*stats)))
        return tallies

    def _later(self, live: LiveView, stored_end: int, numbers: list[int] | None) -> NewPoints | None:
        """Points of these series, or of all, that the live view has shown already but the store did not have when it
        was asked."""
        end = live.applied_offset
        if end <= stored_end:
            return None
        parts = []
        for record in self._spool.read(stored_end, limit=end, max_bytes=1 << 62).records:
            points = live.shown(decode(record.payload), numbers)
            if points is not None:
                parts.append(points)
        return NewPoints.joined(parts) if parts else None


def _key_of(row: Mapping[str, Any]) -> SeriesKey:
    return SeriesKey(*(row[name] for name in _KEY))


def _curves_of(table: Table) -> Iterator[StoredCurve]:
    if table.num_rows == 0:
        return
    columns = {name: table[name].to_numpy() for name in table.columns if name not in (*_KEY, "unit")}
    named = (*_KEY, "turn") if "turn" in columns else _KEY
    keys = list(zip(*(table[name].to_list() for name in named), strict=True))
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
            lowest=float(mine["vmin"].min()),
            highest=float(mine["vmax"].max()),
        )
        key, turn = keys[start][: len(_KEY)], keys[start][len(_KEY) :]
        yield StoredCurve(SeriesKey(*key), units[start], mine, stats, turn[0] // WORLDS if turn else None)
