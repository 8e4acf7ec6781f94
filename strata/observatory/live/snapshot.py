"""The first thing a browser gets: every cached series inside a byte budget. Active runs keep their detail, others get
fewer points, and the answer says so; a client that asks for points itself gets an outline of all that the store holds,
as far as a page can take it. A series that did not change since is not encoded again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from strata.observatory.answers.runs import RunInfo
from strata.observatory.answers.series import Outline, SnapshotSeries
from strata.observatory.answers.stream import Snapshot
from strata.observatory.live.cache import SeriesCache
from strata.observatory.live.decimate import Curve, Ints
from strata.observatory.live.outline import outline_of
from strata.observatory.live.runs import RunBook
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.tally import SeriesStats
from strata.observatory.records.encoding import encode, encoded
from strata.observatory.records.fill import fill
from strata.observatory.stream.ring import Filter

__all__ = ["SnapshotBuilder"]

MAX_POINTS = 2000
_MIN_POINTS = 16
# Measured on noisy series: steps, times, value, min, max and bad of one point.
_BYTES_PER_POINT = 85
_ACTIVE_SHARE = 0.75
# About a megabyte: what a page can take before its first chart without anybody waiting for it.
_SPARSE_POINTS = 12_000
# One and a half megabytes. Runs beyond it are named, also running ones: a page asks for the series of those it shows.
_MAX_OUTLINE = 30_000
# A quarter of a megabyte. Ten thousand would be five, and a page shows fifty.
_MAX_RUNS = 500


@dataclass(frozen=True, slots=True)
class _Encoded:
    total: int
    points: int
    body: bytes


class SnapshotBuilder:
    """Composes the `snapshot` event for one filter."""

    def __init__(
        self,
        series: SeriesTable,
        cache: SeriesCache,
        runs: RunBook,
        budget_bytes: int = 8 << 20,
        max_outline: int = _MAX_OUTLINE,
        max_runs: int = _MAX_RUNS,
    ) -> None:
        self._series = series
        self._cache = cache
        self._runs = runs
        self._budget = budget_bytes // _BYTES_PER_POINT
        self._max_outline = max_outline
        self._max_runs = max_runs
        self._encoded: dict[int, _Encoded] = {}
        self._runs_json: dict[str, tuple[RunInfo, bytes]] = {}

    def build(self, wanted: Filter, epoch: str) -> bytes:
        runs = [info for info in self._runs.told() if wanted.runs is None or info.run_id in wanted.runs]
        ordered = sorted(runs, key=lambda info: not info.is_active)
        if wanted.sparse and (len(ordered) > self._max_runs or self._is_much(ordered)):
            return self._outlined(ordered, epoch)
        live, rest = self._cached(runs, active=True), self._cached(runs, active=False)
        detail, coarse = self._shares(live, rest)
        parts = [*self._series_json(live, detail), *self._series_json(rest, coarse)]
        reduced = any(self._is_reduced(number, detail) for number in live)
        reduced = reduced or any(self._is_reduced(number, coarse) for number in rest)
        left_out = sum(len(self._series.of_run(info.run_id)) for info in runs) - len(live) - len(rest)
        series = [encoded(part) for part in parts]
        return encode(
            Snapshot(
                epoch=epoch,
                runs=self._run_parts(runs),
                series=series,
                reduced=reduced,
                omitted_series=left_out,
                outline=None,
                omitted_runs=[],
                more_runs=False,
            )
        )

    def outline(self, run_ids: list[str]) -> Outline:
        """Who the series of these runs are, and the newest point of each; of wide metrics the first few."""
        numbers = self._numbers(run_ids)
        return outline_of(numbers[~self._series.is_thinned(numbers)], self._series, self._cache.tally)

    def _numbers(self, run_ids: Iterable[str]) -> Ints:
        return np.fromiter(chain.from_iterable(map(self._series.of_run, run_ids)), np.int64)

    def _outlined(self, runs: list[RunInfo], epoch: str) -> bytes:
        """Running ones first, then the newest that fit, of those that a page is told of: of the others it shows none
        before it asks. The first of all whatever its size, for it is looked at."""
        room, omitted, told = self._max_outline, [], runs[: self._max_runs]
        chosen: list[str] = []
        for info in told:
            size = self._series.num_sent(info.run_id)
            if size <= room or not chosen:
                room -= size
                chosen.append(info.run_id)
            else:
                omitted.append(info.run_id)
        return encode(
            Snapshot(
                epoch=epoch,
                runs=self._run_parts(told),
                series=[],
                reduced=False,
                omitted_series=0,
                outline=self.outline(chosen),
                omitted_runs=omitted,
                more_runs=len(told) < len(runs),
            )
        )

    def _run_parts(self, runs: list[RunInfo]) -> list[Any]:
        """As JSON; a record that was encoded before is not encoded again."""
        known, self._runs_json = self._runs_json, {}
        for info in runs:
            before = known.get(info.run_id)
            self._runs_json[info.run_id] = before if before is not None and before[0] is info else (info, encode(info))
        return [encoded(body) for _, body in self._runs_json.values()]

    def _cached(self, runs: list[RunInfo], *, active: bool) -> list[int]:
        return [
            number
            for info in runs
            if info.is_active == active
            for number in self._series.of_run(info.run_id)
            if self._cache.has(number)
        ]

    def forget(self, numbers: list[int]) -> None:
        """Of series that left the cache or were loaded anew."""
        for number in numbers:
            self._encoded.pop(number, None)

    def _is_much(self, runs: list[RunInfo]) -> bool:
        """More points than a page takes at once, or some that only the store has."""
        numbers = self._numbers(info.run_id for info in runs)
        if self._series.is_thinned(numbers).any():
            return True
        points = int(np.minimum(self._cache.tally.totals(numbers), MAX_POINTS).sum())
        return points > _SPARSE_POINTS or not all(self._cache.has(number) for number in numbers.tolist())

    def _shares(self, live: list[int], rest: list[int]) -> tuple[int, int]:
        """Points per series: all of them when they fit, else most of the budget for what is running now."""
        need = {number: min(MAX_POINTS, self._cache.stats(number).total_points) for number in (*live, *rest)}
        if sum(need.values()) <= self._budget:
            return MAX_POINTS, MAX_POINTS
        share = _ACTIVE_SHARE if rest else 1.0
        detail = _clamp(self._budget * share / len(live)) if live else MAX_POINTS
        used = sum(min(need[number], detail) for number in live)
        coarse = _clamp((self._budget - used) / len(rest)) if rest else MAX_POINTS
        return detail, coarse

    def _is_reduced(self, number: int, points: int) -> bool:
        return points < MAX_POINTS and self._cache.stats(number).total_points > points

    def _series_json(self, numbers: list[int], points: int) -> list[bytes]:
        stale = []
        for number in numbers:
            known = self._encoded.get(number)
            if known is None or known.points != points or known.total != self._cache.stats(number).total_points:
                stale.append(number)
        for number, curve in zip(stale, self._cache.curves(stale, points), strict=True):
            stats = self._cache.stats(number)
            self._encoded[number] = _Encoded(stats.total_points, points, self._encode(number, curve, stats))
        return [self._encoded[number].body for number in numbers]

    def _encode(self, number: int, curve: Curve, stats: SeriesStats) -> bytes:
        key, unit = self._series.key(number), self._series.unit(number)
        return encode(fill(SnapshotSeries, key, curve, stats, id=number, unit=unit, attempt=None, origin=None))


def _clamp(points: float) -> int:
    return max(_MIN_POINTS, min(MAX_POINTS, int(points)))
