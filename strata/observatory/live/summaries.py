"""What is known of a run as a whole: last, lowest and highest value of each metric, from the tally that counts the
points, and what its script has set by itself.
"""

import json
from typing import Any, Literal, get_args

import numpy as np

from strata.observatory.answers.runs import MetricSummary
from strata.observatory.live.decimate import Ints
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.tally import Tally
from strata.types.shown import to_shown

__all__ = ["ASPECTS", "Aspect", "RunSummaries"]

Aspect = Literal["last", "min", "max"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)


class RunSummaries:
    """One owner of both kinds. `last` is the mean over ranks, as charts draw it; the extremes are those of any rank."""

    def __init__(self, series: SeriesTable, tally: Tally) -> None:
        self._series = series
        self._tally = tally
        self._said: dict[str, dict[str, tuple[int, Any]]] = {}

    def take(self, run_id: str, name: str, value_json: str, said_ms: int) -> None:
        """What its script says; the newest word on a name counts, an empty one takes it back."""
        known = self._said.setdefault(run_id, {})
        if name in known and said_ms < known[name][0]:
            return
        known[name] = (said_ms, _value(value_json))

    def forget(self, run_id: str) -> None:
        self._said.pop(run_id, None)

    def said(self, run_id: str) -> dict[str, Any]:
        return {name: value for name, (_, value) in self._said.get(run_id, {}).items() if value is not None}

    def said_value(self, run_id: str, name: str) -> Any:
        return self._said.get(run_id, {}).get(name, (0, None))[1]

    def said_names(self) -> set[str]:
        return set().union(*self._said.values())

    def metrics(self, run_id: str) -> dict[str, MetricSummary]:
        """Of every metric that the run itself has logged; samples of its hosts are none."""
        by_name: dict[str, list[int]] = {}
        numbers = np.array(self._series.of_run(run_id), np.int64)
        for number in numbers[~self._series.of_host(numbers)].tolist() if len(numbers) else ():
            by_name.setdefault(self._series.key(number).metric, []).append(number)
        return {name: self._summary(numbers) for name, numbers in sorted(by_name.items())}

    def newest(self, run_id: str, metric: str) -> tuple[float | None, int]:
        """The mean over ranks of its newest values, None when that is no number; and how many values were none."""
        mine = [number for number in self._series.of_run(run_id) if self._series.key(number).metric == metric]
        heard = self._heard(np.array(mine, np.int64))
        if len(heard) == 0:
            return None, 0
        last = self._tally.many(self._newest(heard).tolist())["value"]
        return _finite(last.mean()), int(self._tally.many(heard.tolist())["bad"].sum())

    def column(self, metric: str, aspect: Aspect) -> dict[str, float]:
        """One figure of one metric for all runs that have it."""
        numbers = self._heard(np.array(self._series.of_metric(metric), np.int64))
        if aspect == "last":
            numbers = self._newest(numbers)
        if len(numbers) == 0:
            return {}
        order = np.argsort(self._series.run_numbers(numbers), kind="stable")
        numbers = numbers[order]
        runs = self._series.run_numbers(numbers)
        starts = np.flatnonzero(np.diff(runs, prepend=-1))
        figures = _figures(self._tally.many(numbers.tolist()), starts, aspect)
        finite = np.isfinite(figures)
        owners = map(self._series.run_id, runs[starts][finite].tolist())
        return dict(zip(owners, figures[finite].tolist(), strict=True))

    def _heard(self, numbers: Ints) -> Ints:
        return numbers[self._tally.totals(numbers) > 0] if len(numbers) else numbers

    def _newest(self, numbers: Ints) -> Ints:
        """Of a rank that moved to another host the series where it is now."""
        rows = self._tally.many(numbers.tolist())
        newest: dict[Any, int] = {}
        for place in np.lexsort((rows["time"], rows["step"])).tolist():
            key = self._series.key(int(numbers[place]))
            newest[key.run_id, key.metric, key.rank, key.device] = int(numbers[place])
        return np.array(sorted(newest.values()), np.int64)

    def _summary(self, numbers: list[int]) -> MetricSummary:
        heard = self._heard(np.array(numbers, np.int64))
        every = self._tally.many(heard.tolist())
        last = self._tally.many(self._newest(heard).tolist())["value"]
        return MetricSummary(
            last=_finite(last.mean() if len(last) else np.nan),
            min=_finite(every["low"].min(initial=np.inf)),
            max=_finite(every["high"].max(initial=-np.inf)),
        )


def _figures(rows: Any, starts: Ints, aspect: Aspect) -> Any:
    if aspect == "min":
        return np.minimum.reduceat(rows["low"], starts)
    if aspect == "max":
        return np.maximum.reduceat(rows["high"], starts)
    sizes = np.diff(starts, append=len(rows))
    return np.add.reduceat(rows["value"], starts) / sizes


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _value(value_json: str) -> Any:
    if not value_json:
        return None
    try:
        return to_shown(json.loads(value_json))
    except (ValueError, RecursionError):  # written by another tool: shown as it is
        return to_shown(value_json)
