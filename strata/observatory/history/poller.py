"""Finds what others wrote into metric_points, each 3 s, and refreshes the runs list, each 30 s. Our own points never
come back through here: the live view has them already.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from strata.clock import Clock
from strata.errors import StoreUnavailable, StrataError
from strata.observatory.background.part import Part
from strata.observatory.background.setaside import SetAside
from strata.observatory.history.attempts import AttemptHistory
from strata.observatory.history.edits import RunEditor
from strata.observatory.history.foreign_rows import OVERLAP_MS, Recent, Row, comparable, pick_new
from strata.observatory.history.loader import History
from strata.observatory.live.runs import DETAILS
from strata.observatory.live.view import LiveView, NewPoints
from strata.observatory.store.base import Store, own_rows
from strata.observatory.store.sql import RUN_DETAILS, RUNS, SERIES, SUMMARIES, raw_points
from strata.observatory.store.superseded import Which
from strata.observatory.store.writer import StoreWriter
from strata.types.metrics import MAX_STEP, SeriesKey
from strata.types.shown import MARK

__all__ = ["Poller", "PollerConfig"]

_log = logging.getLogger(__name__)
_META_S = 30.0
_PART = "rows of others"
# More new rows than this in one series are loaded as a curve, not sent one by one.
_MAX_NEW = 20_000
_TOTAL = "SELECT sum(num_points) AS points FROM {db}.series_rollup"


@dataclass(frozen=True, slots=True, kw_only=True)
class PollerConfig:
    """`on_backfilled` reads what else should be there from the start."""

    clock: Clock
    interval_s: float
    edits: RunEditor
    attempts: AttemptHistory
    on_backfilled: Callable[[Store], Awaitable[None]]
    aside: SetAside


class Poller(Part):
    """One task. Every read happens while our own writer is quiet, so counts can be compared exactly."""

    def __init__(
        self, store: Store, writer: StoreWriter, history: History, live: LiveView, config: PollerConfig
    ) -> None:
        self._store = store
        self._writer = writer
        self._history = history
        self._live = live
        self._config = config
        self._recent: dict[int, Recent] = {}
        self.ready = asyncio.Event()

    async def _run(self) -> None:
        clock = self._config.clock
        booted, meta_at = False, clock.monotonic() + _META_S
        while True:
            try:
                await self._store.wait_ready()
                if not booted:
                    await self.backfill()
                    await self._config.on_backfilled(self._store)
                    booted = True
                    self.ready.set()
                else:
                    await self.poll()
                if clock.monotonic() >= meta_at:
                    meta_at = clock.monotonic() + _META_S
                    await self.refresh_runs()
            except StoreUnavailable as error:
                _log.info("poll skipped: %s", error.message)
            except StrataError as error:
                _log.error("poll failed: %s", error.message)
            except Exception as error:  # rows that others wrote can be anything
                _log.exception("poll failed")
                self._config.aside.note(_PART, "a poll of the store", f"{type(error).__name__}: {error}")
            await asyncio.sleep(self._config.interval_s)

    async def backfill(self) -> None:
        """Every run's figures, every series' newest point, and the newest curves until the cache is nearly full."""
        await self._writer.flushed(self._writer.boot_end)
        await self.refresh_runs()
        await self._history.outline(self._live)
        for number in range(len(self._live.series)):
            self._name_odd(self._live.series.key(number), self._live.cache.tally.of(number).last_step)
        room = self._live.cache.max_series * 9 // 10
        chosen = [number for info in self._live.runs.all() for number in self._live.series.of_run(info.run_id)][:room]
        await self._history.fetch(self._live, chosen)
        self._live.is_whole = True
        if chosen:
            self._live.stream.resync("history was loaded")
        self._live.stream.release()

    async def refresh_runs(self) -> None:
        """Also publishes them: `runs_meta` comes each 30 s even from an idle cluster."""
        await self._config.edits.load()
        await self._config.attempts.load()
        rows = (await self._store.query(RUNS)).to_rows()
        await self._config.edits.sweep({row["run_id"] for row in rows})
        told = await own_rows(self._store, RUN_DETAILS)
        summaries = await own_rows(self._store, SUMMARIES)
        # From here on without a pause: nobody may see a run's points without what it said of its end.
        self._live.runs.from_store(rows)
        for row in told:
            details = {name: row[name] for name in DETAILS}
            self._live.runs.describe(row["run_id"], details, row["config_json"], row["tags"], row["started_ms"])
            self._live.runs.state(row["run_id"], row["status"], row["reason"], row["said_ms"])
        for row in summaries:
            if row["run_id"] not in self._live.runs.deleted:
                self._live.summaries.take(row["run_id"], row["name"], row["value_json"], row["said_ms"])
        self._config.edits.apply()
        self._live.publish_runs()

    async def poll(self) -> int:
        """Shows what is new from others; returns how many rows that was."""
        reload: list[int] = []
        found = 0
        async with self._writer.quiet():
            total = int((await self._store.query(_TOTAL))["points"][0] or 0)
            if total != self._live.series.total_stored:
                for row in (await self._store.query(SERIES)).to_rows():
                    with self._config.aside.guard(_PART, f"metric {row['metric']} of run {row['run_id']}"):
                        found += await self._check_series(row, reload)
        if reload:
            await self._history.fetch(self._live, reload)
            self._live.stream.resync("history of a run was loaded")
        return found

    async def _check_series(self, row: dict[str, Any], reload: list[int]) -> int:
        series = self._live.series
        key = SeriesKey(row["run_id"], row["metric"], row["host"], row["rank"], row["device"])
        self._name_odd(key, row["top_step"])
        number = series.intern(key, row["unit"])
        new = int(row["points"]) - series.stored(number)
        if new == 0:
            return 0
        series.set_stored(number, row["points"])
        if new < 0 or row["run_id"] in self._live.runs.deleted:
            return 0  # rows were deleted: the run's figures follow with the runs list
        rows = await self._find_new(number, new)
        if rows is None:
            reload.append(number)
            return new
        columns = list(zip(*rows, strict=True))
        self._recent.setdefault(number, Recent()).add(rows)
        self._live.take_foreign(
            NewPoints(
                np.full(len(rows), number, np.int64),
                np.array(columns[0], np.int64),
                np.array(columns[1], np.int64),
                np.array(columns[2], np.float64),
            )
        )
        return len(rows)

    async def _find_new(self, number: int, new: int) -> list[Row] | None:
        if new > _MAX_NEW:
            return None
        cache = self._live.cache
        self._live.tick()
        known = cache.tally.totals(np.array([number]))[0] > 0
        raw = not known or (cache.has(number) and cache.is_raw(number))
        since = None if raw else cache.stats(number).last_time - OVERLAP_MS
        key = self._live.series.key(number)
        where = {"runs": [key.run_id], **key._asdict(), "from_ms": since}
        del where["run_id"]
        which: Which = "newest" if self._live.attempts.is_fenced(key.run_id) else "all"
        sql, parameters = raw_points(where, 2 * _MAX_NEW, which)
        rows = (await self._store.query(sql, parameters)).to_rows()
        found = [(min(row["step"], MAX_STEP), row["ms"], row["value"]) for row in rows]
        # Our own rows that the store has must be in the cache before the two are compared.
        self._live.tick()
        if not known:
            return found if len(found) == new else None
        return pick_new(found, self._known(number), cache.stats(number).last_time, new)

    def _name_odd(self, key: SeriesKey, top_step: int) -> None:
        """Listed, but not as it was written: people are told why."""
        item = f"metric {key.metric} of run {key.run_id}"
        if any(text.startswith(MARK) for text in (key.run_id, key.metric)):
            self._config.aside.note(_PART, item, "its name is not UTF-8, so that its curve cannot be asked for")
        elif top_step >= MAX_STEP:
            self._config.aside.note(_PART, item, "it has steps beyond 2^53, which are shown as 2^53")

    def _known(self, number: int) -> Counter[Row] | None:
        """The rows of a series that we have, as far as they are kept one by one."""
        cache = self._live.cache
        if not cache.has(number) or not cache.is_raw(number):
            recent = self._recent.get(number)
            return recent.rows if recent else None
        curve = cache.curve(number)
        rows = zip(curve.steps.tolist(), curve.times.tolist(), curve.values.tolist(), strict=True)
        return Counter(map(comparable, rows))
