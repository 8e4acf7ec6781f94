"""Series for REST: from the live cache when they are whole there, else from the store."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from strata.errors import StoreUnavailable
from strata.observatory.answers.checkpoints import CheckpointRow
from strata.observatory.answers.series import RunSeries
from strata.observatory.history.loader import History, StoredCurve, read_curves
from strata.observatory.live.decimate import curve_of, thin
from strata.observatory.live.lineage import lineage_of
from strata.observatory.live.view import LiveView
from strata.observatory.records.fill import fill
from strata.observatory.store.base import Store
from strata.observatory.store.sql import checkpoint_rows
from strata.observatory.store.superseded import Which

__all__ = ["CurveReader"]

_SETTLE_S = 3.0


class CurveReader:
    """Answers with at most `points` points per series, extremes included."""

    def __init__(self, live: LiveView, history: History, store: Store, flush: Callable[[], Awaitable[None]]) -> None:
        self._live = live
        self._history = history
        self._store = store
        self._flush = flush

    async def bring(self, numbers: Sequence[int]) -> list[int]:
        """Those of these series that the cache has, once what was not in it has been read from the store. While there
        is no store that is less than was asked for."""
        series, deleted = self._live.series, self._live.runs.deleted
        known = [one for one in numbers if one < len(series) and series.key(one).run_id not in deleted]
        missing = [number for number in known if not self._live.cache.has(number)]
        if missing:
            with contextlib.suppress(StoreUnavailable):
                await self._history.fetch(self._live, missing, keep=known)
        return [number for number in known if self._live.cache.has(number)]

    async def read(
        self, run_id: str, where: Mapping[str, Any], points: int, which: Which = "newest"
    ) -> list[RunSeries]:
        """`where` as in sql.curves, without the run; None means no limit. What is superseded comes as series of its
        own, attempt by attempt."""
        found = await self._newest(run_id, where, points) if which != "superseded" else []
        if which == "newest" or not self._live.attempts.is_fenced(run_id):
            return found
        await self.settle(run_id)
        older = await read_curves(self._store, {"runs": [run_id], **where}, _buckets(points), "superseded")
        return [*found, *await asyncio.to_thread(lambda: [_stored(curve, points) for curve in older])]

    async def inherited(self, run_id: str, where: Mapping[str, Any], points: int) -> list[RunSeries]:
        """What the runs measured that this one was forked from, each up to where its fork began."""
        found: list[RunSeries] = []
        for origin in lineage_of(self._live.runs, run_id):
            upto = min(step for step in (origin.step, where.get("to_step")) if step is not None)
            measured = await self._newest(origin.run_id, {**where, "to_step": upto}, points)
            found += [replace(one, origin=origin.run_id) for one in measured]
        return found

    async def _newest(self, run_id: str, where: Mapping[str, Any], points: int) -> list[RunSeries]:
        self._live.tick()  # who has just sent points finds them
        narrowed = any(value is not None for name, value in where.items() if name not in ("metric", "rank"))
        if not narrowed and self._live.is_whole and (shown := self._shown(run_id, where)):
            return self._from_cache(shown, points)
        try:
            await self.settle(run_id)
            found = await read_curves(self._store, {"runs": [run_id], **where}, _buckets(points), self.whole(run_id))
        except StoreUnavailable:
            if narrowed or not (shown := self._shown(run_id, where)):
                raise
            return self._from_cache(shown, points)  # what is live, while there is no more
        return await asyncio.to_thread(lambda: [_stored(curve, points) for curve in found])

    async def checkpoint_rows(self, run_id: str) -> list[CheckpointRow]:
        """The newest thousand points of its `checkpoint*` metrics as they were written, with what their tags say."""
        await self.settle(run_id)
        rows = (await self._store.query(*checkpoint_rows(run_id, self.whole(run_id)))).to_rows()
        return [_row(row) for row in rows]

    def whole(self, run_id: str) -> Which:
        """How to read the run without what is superseded: where nothing is, without looking for it."""
        return "newest" if self._live.attempts.is_fenced(run_id) else "all"

    async def settle(self, run_id: str) -> None:
        """Points that were accepted but that the store has not got yet are waited for, within reason."""
        series, cache = self._live.series, self._live.cache
        ahead = not self._live.is_whole or self._history.is_behind(self._live)
        ahead = ahead or any(
            series.stored(number) < cache.stats(number).total_points + series.hidden(number)
            for number in series.of_run(run_id)
        )
        if ahead:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SETTLE_S):
                    if not self._live.is_whole:
                        await self._store.wait_ready()  # just started, and so is the engine
                    if self._store.ready:
                        await self._flush()

    def _shown(self, run_id: str, where: Mapping[str, Any]) -> list[int]:
        """The series that are asked for, when the cache has all of them."""
        series, metric, rank = self._live.series, where.get("metric"), where.get("rank")
        numbers = np.array(series.of_run(run_id), np.int64)
        of_rank = numbers if rank is None else numbers[series.ranks(numbers) == rank]
        asked = [number for number in of_rank.tolist() if metric in (None, series.key(number).metric)]
        return asked if all(map(self._live.cache.has, asked)) else []

    def _from_cache(self, numbers: Sequence[int], points: int) -> list[RunSeries]:
        series, cache = self._live.series, self._live.cache
        answers = []
        for number in numbers:
            curve, stats, unit = cache.curve(number, points), cache.stats(number), series.unit(number)
            answers.append(fill(RunSeries, series.key(number), curve, stats, unit=unit, attempt=None, origin=None))
        return answers


def _buckets(points: int) -> int:
    """Two points per bucket, and the newest one: then none of them has to be left out, which costs more than to read
    them."""
    return max(1, (points - 1) // 2)


def _row(row: dict[str, Any]) -> CheckpointRow:
    text = row.pop("tags_json")
    try:
        tags = json.loads(text) if text else {}
    except ValueError:
        tags = {"tags_json": text}  # somebody else's column: whatever it holds is shown
    tags = tags if isinstance(tags, dict) else {"tags_json": text}
    return fill(CheckpointRow, **row, tags=tags)


def _stored(found: StoredCurve, points: int) -> RunSeries:
    curve = curve_of(found.buckets)
    stats = found.stats
    if np.isfinite(stats.last_value) and (len(curve) == 0 or curve.steps[-1] < stats.last_step):
        curve = curve.with_last(stats.last_step, stats.last_time, stats.last_value)
    return fill(RunSeries, found.key, thin(curve, points), stats, unit=found.unit, attempt=found.attempt, origin=None)
