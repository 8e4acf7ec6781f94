"""GET /api/series and /api/outline: the series of runs, and the points of those a page shows, by their numbers in the
stream's epoch. GET /api/series/names: what their metrics are called, in all runs.
"""

from typing import Annotated

from fastapi import APIRouter, Query

from strata.errors import InvalidArgument
from strata.observatory.answers.runs import MetricName
from strata.observatory.answers.series import OutlineAnswer, PointsAnswer, SeriesPoints
from strata.observatory.http.parts import Parts
from strata.observatory.http.payload import Answer, answer
from strata.observatory.live.decimate import Curve
from strata.observatory.live.tally import SeriesStats
from strata.observatory.records.fill import fill
from strata.observatory.search.names import find_names

__all__ = ["series_router"]

_MAX_IDS = 1000


def series_router(parts: Parts) -> APIRouter:
    """What a sparse stream leaves out. `total_points` says where in the stream the answer ends."""
    router = APIRouter(tags=["runs"])

    @router.get("/api/series")
    async def series(
        ids: Annotated[str, Query(description="numbers of series, comma separated, at most 1000")],
        points: Annotated[int, Query(ge=2, le=2000)] = 500,
    ) -> Answer[PointsAnswer]:
        live = parts.live
        asked = _numbers(ids)
        numbers = await parts.curves.bring(asked)
        curves = live.cache.curves(numbers, points)
        found = [
            _points(number, curve, live.cache.stats(number)) for number, curve in zip(numbers, curves, strict=True)
        ]
        missing = sorted(set(asked) - set(numbers))
        return answer(PointsAnswer(epoch=parts.broadcaster.epoch, series=found, missing=missing))

    @router.get("/api/series/names")
    async def names(
        q: Annotated[str, Query(max_length=200, description="words that the name holds")] = "",
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Answer[list[MetricName]]:
        """Metrics by name, of all runs: a page knows those of the runs that it was told of."""
        parts.live.tick()
        return answer(find_names(parts.live, q, limit))

    @router.get("/api/outline")
    async def outline(
        runs: Annotated[str, Query(description="run ids, comma separated, whose series a snapshot left out")],
    ) -> Answer[OutlineAnswer]:
        parts.live.tick()  # who has just sent points finds the run
        known = [run_id for run_id in runs.split(",") if run_id in parts.live.runs]
        stream, outlined = parts.broadcaster, parts.live.snapshots.outline(known)
        return answer(OutlineAnswer(epoch=stream.epoch, seq=stream.last_seq, outline=outlined))

    return router


def _points(number: int, curve: Curve, stats: SeriesStats) -> SeriesPoints:
    if len(curve) < stats.total_points:
        return fill(SeriesPoints, curve, stats, id=number)
    # Every point is itself, so the band is the line: three of six columns need not be sent.
    return fill(SeriesPoints, curve, stats, id=number, min=None, max=None, bad=None)


def _numbers(text: str) -> list[int]:
    words = text.split(",")
    if len(words) > _MAX_IDS or not all(word.isdecimal() and len(word) < 10 for word in words):
        raise InvalidArgument(f"ids={text[:40]!r} is not a list of at most {_MAX_IDS} numbers")
    return [int(word) for word in words]
