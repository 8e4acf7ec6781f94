"""Detectors over values: told once, and again only after it was well in between."""

import math

import numpy as np

from strata.observatory.alerts.point_rules import PointDetector
from strata.observatory.live.series import SeriesTable
from strata.observatory.live.view import NewPoints
from strata.types.metrics import SeriesKey


def watch(metric: str, values: list[float]) -> list[str]:
    series = SeriesTable()
    number = series.intern(SeriesKey("r1", metric))
    detector = PointDetector(series)
    found = []
    for step, value in enumerate(values):
        points = NewPoints(np.array([number]), np.array([step]), np.array([step]), np.array([value]))
        found += [finding.kind for finding in detector.observe(points)]
    return found


def test_a_bad_loss_is_told_once_per_episode() -> None:
    assert watch("train/loss", [1.0, math.nan, math.nan, 1.0, math.inf]) == ["bad_loss", "bad_loss"]
    assert watch("accuracy", [math.nan]) == []


def test_divergence_after_a_good_start() -> None:
    falling = [1.0 / (1 + step / 50) for step in range(300)]
    assert watch("loss", falling) == []
    assert watch("loss", [*falling, *[5.0] * 30]) == ["divergence"]


def test_throughput_that_halves() -> None:
    assert watch("throughput/tokens_per_sec", [100.0] * 300) == []
    assert watch("throughput/tokens_per_sec", [*[100.0] * 300, *[20.0] * 80]) == ["throughput_drop"]


def test_a_short_dip_in_throughput_is_no_alarm() -> None:
    """As after a restart, or during a slow save."""
    assert watch("throughput/tokens_per_sec", [*[100.0] * 300, *[20.0] * 30, *[100.0] * 100]) == []


def test_a_disk_that_fills_up() -> None:
    assert watch("sys.disk./.percent", [50.0, 89.9]) == []
    assert watch("sys.disk./.percent", [95.0]) == ["disk_full"]
