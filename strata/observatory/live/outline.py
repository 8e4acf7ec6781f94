"""Many series in few bytes: who they are and the newest point of each, as columns. Their points are asked for apart."""

from collections.abc import Iterable

from strata.observatory.answers.series import Outline
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.tally import Tally

__all__ = ["outline_of"]


def outline_of(numbers: list[int], series: SeriesTable, tally: Tally) -> Outline:
    """Ten thousand series in about half a megabyte: names once, rows refer to them by position."""
    keys = [series.key(number) for number in numbers]
    runs, run = _coded(key.run_id for key in keys)
    metrics, metric = _coded(key.metric for key in keys)
    hosts, host = _coded(key.host for key in keys)
    units, unit = _coded(series.unit(number) for number in numbers)
    newest = tally.many(numbers)
    return Outline(
        runs=runs,
        metrics=metrics,
        hosts=hosts,
        units=units,
        id=numbers,
        run=run,
        metric=metric,
        host=host,
        rank=[key.rank for key in keys],
        device=[key.device for key in keys],
        unit=unit,
        total_points=newest["total"].copy(),  # the encoder takes no column with gaps between its values
        nan_count=newest["bad"].copy(),
        step=newest["step"].copy(),
        time=newest["time"].copy(),
        value=newest["value"].copy(),
    )


def _coded(words: Iterable[str]) -> tuple[list[str], list[int]]:
    """The distinct words in order of appearance, and for each word its place among them."""
    places: dict[str, int] = {}
    codes = [places.setdefault(word, len(places)) for word in words]
    return list(places), codes
