"""Runs the detectors: on every tick over new points, on events as they come, and every few seconds over the rest."""

import asyncio
from pathlib import Path

import numpy as np
import psutil

from strata.clock import Clock
from strata.observatory.alerts.book import AlertBook
from strata.observatory.alerts.cluster_rules import find_late, find_stalled, from_event
from strata.observatory.alerts.point_rules import PointDetector
from strata.observatory.background.part import Part
from strata.observatory.cluster import views
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.live.view import LiveView, NewPoints
from strata.observatory.records.finding import Finding

__all__ = ["AlertWatcher"]

_INTERVAL_S = 5.0
_LOW_PERCENT = 95.0
_HISTORY_MS = 3_600_000


class AlertWatcher(Part):
    """Owns no state of its own beside the detectors'."""

    def __init__(
        self, live: LiveView, published: PublishedCluster, alerts: AlertBook, clock: Clock, data_dir: Path
    ) -> None:
        self._live = live
        self._published = published
        self._alerts = alerts
        self._clock = clock
        self._data_dir = data_dir
        self._points = PointDetector(live.series)
        live.observers.append(self._on_points)
        published.listeners.append(lambda event, _: alerts.report(from_event(event)))

    def check(self) -> list[Finding]:
        """What time alone brings to light."""
        tasks = {task.task_id: task.status for task in self._published.followed.records.tasks.values()}
        now_ms = round(self._clock.wall() * 1000)
        found = find_stalled(self._live.runs.all(), tasks, now_ms)
        if self._published.connected:
            workers = views.suspects(self._published.followed)
            over = {task_id for task_id, status in tasks.items() if status.final}
            found += find_late([one for one in workers if one.current_task not in over])
        return found + self._check_disk()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL_S)
            with self._published.aside.guard("detectors", "the look at runs, workers and the disk"):
                self._alerts.report(self.check())

    def _on_points(self, points: NewPoints) -> None:
        """What is imported, or sent at last by a run that ended hours ago, is history and no alert."""
        fresh = np.flatnonzero(points.times > self._clock.wall() * 1000 - _HISTORY_MS)
        if len(fresh):
            self._alerts.report(self._points.observe(points.take(fresh)))

    def _check_disk(self) -> list[Finding]:
        usage = psutil.disk_usage(str(self._data_dir))
        if usage.percent < _LOW_PERCENT:
            return []
        text = f"the disk of {self._data_dir} is {usage.percent:.1f} % full: metrics and checkpoints will stop fitting"
        return [Finding(kind="disk_full", severity="critical", message=text, subject=str(self._data_dir))]
