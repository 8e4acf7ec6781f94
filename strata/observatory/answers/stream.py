"""The events of GET /stream, by name."""

from dataclasses import dataclass

from strata.observatory.answers.alerts import Alert
from strata.observatory.answers.cluster import ClusterState
from strata.observatory.answers.logs import LogEntry
from strata.observatory.answers.runs import RunInfo
from strata.observatory.answers.series import NewSeries, Outline, SnapshotSeries

__all__ = ["AlertNews", "Delta", "LogNews", "Resync", "RunsMeta", "Snapshot", "StreamEvents"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that is cached. `reduced`: some series have fewer points than they could. Where there are many, `outline`
    stands in place of `series`, and `omitted_runs` names those of `runs` that are not even in it: GET /api/outline has
    them. `more_runs`: `runs` are the newest for a sparse stream, and so are the series; GET /api/runs has all."""

    epoch: str
    runs: list[RunInfo]
    series: list[SnapshotSeries]
    reduced: bool
    omitted_series: int
    outline: Outline | None
    omitted_runs: list[str]
    more_runs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """New points: the number of a series, then columns of steps, times and values."""

    new_series: list[NewSeries]
    points: list[tuple[int, list[int], list[int], list[float | None]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsMeta:
    """Every run, and those that were just deleted. `partial`: only the runs that changed since the last such event, for
    a sparse stream."""

    runs: list[RunInfo]
    deleted: list[str]
    partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogNews:
    """New log lines. `skipped` came with them too fast for a page, and are found by a search only."""

    logs: list[LogEntry]
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertNews:
    """New alerts."""

    alerts: list[Alert]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resync:
    """What the client has is out of date; a snapshot follows."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvents:
    """The data of every kind of event; each message carries one of them under its name."""

    snapshot: Snapshot
    delta: Delta
    runs_meta: RunsMeta
    state: ClusterState
    log: LogNews
    alert: AlertNews
    resync: Resync
