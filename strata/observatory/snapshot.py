"""The first thing a browser gets: every cached series inside a byte budget. Active runs keep their detail, others get
fewer points, and the answer says so; a client that asks for points itself gets an outline of them all. A series that
did not change since is not encoded again.
"""

from dataclasses import dataclass

import numpy as np

from strata.observatory.cache import SeriesCache, SeriesStats
from strata.observatory.decimate import Curve
from strata.observatory.encoding import encode
from strata.observatory.outline import outline_of
from strata.observatory.ring import Filter
from strata.observatory.runs import RunBook
from strata.observatory.series import SeriesTable

__all__ = ["SnapshotBuilder", "series_head"]

MAX_POINTS = 2000
_MIN_POINTS = 16
# Measured on noisy series: steps, times, value, min, max and bad of one point.
_BYTES_PER_POINT = 85
_ACTIVE_SHARE = 0.75
# About a megabyte: what a page can take before its first chart without anybody waiting for it.
_SPARSE_POINTS = 12_000


@dataclass(frozen=True, slots=True)
class _Encoded:
    total: int
    points: int
    body: bytes


class SnapshotBuilder:
    """Composes the `snapshot` event for one filter."""

    def __init__(self, series: SeriesTable, cache: SeriesCache, runs: RunBook, budget_bytes: int = 8 << 20) -> None:
        self._series = series
        self._cache = cache
        self._runs = runs
        self._budget = budget_bytes // _BYTES_PER_POINT
        self._encoded: dict[int, _Encoded] = {}

    def build(self, wanted: Filter, epoch: str) -> bytes:
        runs = [info for info in self._runs.all() if wanted.runs is None or info.run_id in wanted.runs]
        active = {info.run_id for info in runs if info.is_active}
        live: list[int] = []
        rest: list[int] = []
        for info in runs:
            numbers = [number for number in self._series.of_run(info.run_id) if self._cache.has(number)]
            (live if info.run_id in active else rest).extend(numbers)
        if wanted.sparse and self._is_much([*live, *rest]):
            outline = outline_of([*live, *rest], self._series, self._cache)
            opening = {"epoch": epoch, "runs": [info.to_dict() for info in runs], "series": []}
            return encode(opening | {"outline": outline, "reduced": False})
        detail, coarse = self._shares(live, rest)
        parts = [*self._series_json(live, detail), *self._series_json(rest, coarse)]
        reduced = any(self._is_reduced(number, detail) for number in live)
        reduced = reduced or any(self._is_reduced(number, coarse) for number in rest)
        infos = encode([info.to_dict() for info in runs])
        return b'{"epoch":%b,"runs":%b,"series":[%b],"reduced":%b}' % (
            encode(epoch), infos, b",".join(parts), b"true" if reduced else b"false",
        )  # fmt: skip

    def forget(self, numbers: list[int]) -> None:
        """Of series that left the cache or were loaded anew."""
        for number in numbers:
            self._encoded.pop(number, None)

    def _is_much(self, numbers: list[int]) -> bool:
        return int(np.minimum(self._cache.newest(numbers).totals, MAX_POINTS).sum()) > _SPARSE_POINTS

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
        return encode(
            {
                **series_head(self._series, number),
                "steps": curve.steps,
                "times": curve.times,
                "values": curve.values,
                "min": curve.low,
                "max": curve.high,
                "bad": curve.bad,
                "total_points": stats.total_points,
                "nan_count": stats.nan_count,
            }
        )


def series_head(series: SeriesTable, number: int) -> dict[str, object]:
    """A series' identity as the stream shows it."""
    return {"id": number, **series.key(number)._asdict(), "unit": series.unit(number)}


def _clamp(points: float) -> int:
    return max(_MIN_POINTS, min(MAX_POINTS, int(points)))
