"""Series of points as REST and the stream show them: columns of equal length, times in Unix milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

__all__ = [
    "Floats",
    "Ints",
    "NewSeries",
    "Outline",
    "OutlineAnswer",
    "PointsAnswer",
    "RunSeries",
    "SeriesPoints",
    "SnapshotSeries",
]

if TYPE_CHECKING:
    Ints = Sequence[int] | npt.NDArray[np.int64]
    Floats = Sequence[float | None] | npt.NDArray[np.float64]
else:  # what they are once they are JSON: NaN and Inf have become null
    Ints = list[int]
    Floats = list[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeries:
    """A series and its points. `bad` counts NaN and Inf behind each point, `min` and `max` are the band that a point
    stands for. `attempt` is null, but for points that a later attempt superseded: then it is the one that measured
    them. `origin` is null, but for points of before a fork: then it is the run that measured them."""

    metric: str
    host: str
    rank: int
    device: int
    unit: str
    attempt: int | None
    origin: str | None
    steps: Ints
    times: Ints
    values: Floats
    min: Floats
    max: Floats
    bad: Ints
    total_points: int
    nan_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSeries(RunSeries):
    """The same with its run, and its number in the stream's epoch."""

    id: int
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSeries:
    """A series that the stream speaks of for the first time; `total_points` is how many it had before."""

    id: int
    run_id: str
    metric: str
    host: str
    rank: int
    device: int
    unit: str
    total_points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Many series as columns, with the newest point of each: `run`, `metric`, `host` and `unit` are places in the
    lists of words."""

    runs: list[str]
    metrics: list[str]
    hosts: list[str]
    units: list[str]
    id: Ints
    run: Ints
    metric: Ints
    host: Ints
    rank: Ints
    device: Ints
    unit: Ints
    total_points: Ints
    nan_count: Ints
    step: Ints
    time: Ints
    value: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineAnswer:
    """Who the series of some runs are, by their numbers in the stream's epoch, as they were after its event `seq`: what
    the stream tells later is new to them."""

    epoch: str
    seq: int
    outline: Outline


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPoints:
    """The points of a series that an outline only named. `min`, `max` and `bad` are null where every point is
    itself."""

    id: int
    total_points: int
    nan_count: int
    steps: Ints
    times: Ints
    values: Floats
    min: Floats | None
    max: Floats | None
    bad: Ints | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsAnswer:
    """Points by number; `missing` are numbers that could not be read now."""

    epoch: str
    series: list[SeriesPoints]
    missing: list[int]
