"""Many series in few bytes: who they are and the newest point of each, as columns. Their points are asked for apart."""

from strata.observatory.answers.series import Outline
from strata.observatory.live.decimate import Ints
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.tally import Tally

__all__ = ["outline_of"]


def outline_of(numbers: Ints, series: SeriesTable, tally: Tally) -> Outline:
    """Ten thousand series in about half a megabyte: names once, rows refer to them by position. No step of it is taken
    series by series: a page of 200,000 must not stop the others."""
    runs, run = series.words("run", numbers)
    metrics, metric = series.words("metric", numbers)
    hosts, host = series.words("host", numbers)
    units, unit = series.words("unit", numbers)
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
        rank=series.ranks(numbers),
        device=series.devices(numbers),
        unit=unit,
        total_points=newest["total"].copy(),  # the encoder takes no column with gaps between its values
        nan_count=newest["bad"].copy(),
        step=newest["step"].copy(),
        time=newest["time"].copy(),
        value=newest["value"].copy(),
    )
