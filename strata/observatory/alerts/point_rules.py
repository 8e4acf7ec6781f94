"""Watches the values of losses, throughputs and disks as they come in. Only series with such names cost anything."""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from strata.observatory.answers.alerts import Severity
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.view import NewPoints
from strata.observatory.records.finding import Finding
from strata.types.metrics import SeriesKey

__all__ = ["PointDetector"]

_UNKNOWN, _PLAIN, _LOSS, _THROUGHPUT, _DISK = range(5)

_WARM_UP = 50
_DIVERGED = 3.0
_RECOVERED = 1.5
_SLOW = 0.5
_DISK_WARNING = 90.0
_DISK_CRITICAL = 97.0


@dataclass(slots=True)
class _Track:
    """A series' smoothed value and what it is compared with."""

    count: int = 0
    fast: float = 0.0
    slow: float = 0.0
    best: float = math.inf
    alarmed: bool = False
    bad: bool = False
    low: int = 0

    def add(self, value: float) -> None:
        self.count += 1
        # Averages that start as plain means, so that the first points are not over-weighted.
        self.fast += (value - self.fast) * max(0.1, 1.0 / self.count)
        self.slow += (value - self.slow) * max(0.005, 1.0 / self.count)
        if self.count >= _WARM_UP:
            self.best = min(self.best, self.fast)


class PointDetector:
    """NaN or Inf in a loss, a loss that runs away, throughput that halves, a disk that fills up."""

    def __init__(self, series: SeriesTable) -> None:
        self._series = series
        self._kinds: npt.NDArray[np.uint8] = np.zeros(1024, np.uint8)
        self._tracks: dict[int, _Track] = {}

    def observe(self, points: NewPoints) -> list[Finding]:
        """Findings among the points of one tick."""
        chosen = np.flatnonzero(self._classified(points.numbers) > _PLAIN)
        found = []
        for place in chosen.tolist():
            number = int(points.numbers[place])
            finding = self._check(number, int(points.steps[place]), float(points.values[place]))
            if finding is not None:
                found.append(finding)
        return found

    def _classified(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        top = int(numbers.max())
        while top >= len(self._kinds):
            self._kinds = np.concatenate([self._kinds, np.zeros_like(self._kinds)])
        kinds = self._kinds[numbers]
        if (kinds == _UNKNOWN).any():
            for number in np.unique(numbers[kinds == _UNKNOWN]).tolist():
                self._kinds[number] = _kind_of(self._series.key(number).metric)
            kinds = self._kinds[numbers]
        return kinds

    def _check(self, number: int, step: int, value: float) -> Finding | None:
        key = self._series.key(number)
        if self._kinds[number] == _DISK:
            return _check_disk(key, step, value)
        check = self._check_loss if self._kinds[number] == _LOSS else self._check_throughput
        return check(number, key, step, value)

    def _check_loss(self, number: int, key: SeriesKey, step: int, value: float) -> Finding | None:
        track = self._tracks.setdefault(number, _Track())
        if not math.isfinite(value):
            if track.bad:
                return None
            track.bad = True
            return _about(key, step, "bad_loss", "critical", f"{key.metric} is {value} at step {step}")
        track.bad = False
        track.add(value)
        if track.count < 2 * _WARM_UP or track.best <= 0:
            return None
        if track.fast < _RECOVERED * track.best:
            track.alarmed = False
        if track.alarmed or track.fast <= _DIVERGED * track.best:
            return None
        track.alarmed = True
        text = f"{key.metric} diverges: {track.fast:.4g} after a best of {track.best:.4g}"
        return _about(key, step, "divergence", "warning", text)

    def _check_throughput(self, number: int, key: SeriesKey, step: int, value: float) -> Finding | None:
        if not math.isfinite(value):
            return None
        track = self._tracks.setdefault(number, _Track())
        track.add(value)
        if track.count < 2 * _WARM_UP:
            return None
        if track.fast > 0.8 * track.slow:
            track.alarmed = False
        track.low = track.low + 1 if track.fast < _SLOW * track.slow else 0
        if track.alarmed or track.low < _WARM_UP:  # a restart or a slow save is not a drop
            return None
        track.alarmed = True
        text = f"{key.metric} dropped to {track.fast:.4g} from {track.slow:.4g}"
        return replace(_about(key, step, "throughput_drop", "warning", text), subject=f"{key.run_id}/{key.metric}")


def _check_disk(key: SeriesKey, step: int, value: float) -> Finding | None:
    if not value >= _DISK_WARNING:
        return None
    severity: Severity = "critical" if value >= _DISK_CRITICAL else "warning"
    where = f" on {key.host}" if key.host else ""
    found = _about(key, step, "disk_full", severity, f"{key.metric}{where} is at {value:.1f} %")
    return replace(found, subject=f"{key.host}/{key.metric}")  # one disk, however many runs and ranks see it


def _about(key: SeriesKey, step: int, kind: str, severity: Severity, message: str) -> Finding:
    where = f" (run {key.run_id}, rank {key.rank})"
    return Finding(
        kind=kind,
        severity=severity,
        message=message + where,
        subject="/".join(map(str, key)),
        run_id=key.run_id,
        rank=key.rank,
        step=step,
    )


def _kind_of(metric: str) -> int:
    name = metric.lower()
    if "loss" in name:
        return _LOSS
    if name.startswith(("throughput", "train/throughput")):
        return _THROUGHPUT
    if name.startswith("sys.disk.") and name.endswith(".percent"):
        return _DISK
    return _PLAIN
