"""Points and the series they belong to, and what a run is: the nouns of the metrics plane."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from strata.errors import InvalidArgument
from strata.types.names import check_metric, check_name

__all__ = ["ACTIVE_WINDOW_S", "MAX_STEP", "NO_DEVICE", "RunInfo", "RunState", "SeriesKey", "check_series"]

NO_DEVICE = 65535
# Browsers count exactly up to 2**53; a step beyond it is a mistake, not progress.
MAX_STEP = 1 << 53
# A run whose writer says nothing but its points is active while the last one is younger than five minutes.
ACTIVE_WINDOW_S = 300.0
_MAX_HOST = 255


class SeriesKey(NamedTuple):
    """One metric of one run on one rank: the identity of a line in a chart."""

    run_id: str
    metric: str
    host: str = ""
    rank: int = 0
    device: int = NO_DEVICE


def check_series(key: SeriesKey) -> SeriesKey:
    """Returns `key` when every part of it is sane, else raises InvalidArgument that names the part."""
    check_name("run_id", key.run_id)
    check_metric(key.metric)
    if len(key.host) > _MAX_HOST or not key.host.isprintable():
        raise InvalidArgument(f"host of metric {key.metric!r} has {len(key.host)} characters or unprintable ones")
    if not 0 <= key.rank < 1 << 32:
        raise InvalidArgument(f"rank of metric {key.metric!r} is {key.rank}, it must fit 32 bits")
    if not 0 <= key.device <= NO_DEVICE:
        raise InvalidArgument(f"device of metric {key.metric!r} is {key.device}, it must be 0 to {NO_DEVICE}")
    return key


class RunState(StrEnum):
    """How a run stands. LOST may become RUNNING again: it means silence, and nobody knows why."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run as the runs list shows it. Times are Unix milliseconds here; what nobody said is None. `state` is decided
    by the observatory; `status` is its owner's own last word."""

    run_id: str
    start_ms: int | None = None
    last_event_ms: int | None = None
    latest_step: int | None = None
    state: RunState = RunState.RUNNING
    reason: str = ""
    num_series: int = 0
    num_points: int = 0
    task_id: str | None = None
    name: str | None = None
    project: str | None = None
    status: str | None = None
    notes: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_active(self) -> bool:
        return self.state is RunState.RUNNING

    def to_dict(self) -> dict[str, Any]:
        return {
            "run_id": self.run_id,
            "start_time": _seconds(self.start_ms),
            "start_time_ms": self.start_ms,
            "last_event_time": _seconds(self.last_event_ms),
            "last_event_time_ms": self.last_event_ms,
            "latest_step": self.latest_step,
            "is_active": self.is_active,
            "num_series": self.num_series,
            "num_points": self.num_points,
            "task_id": self.task_id,
            "name": self.name,
            "project": self.project,
            "status": self.status,
            "state": self.state.value,
            "reason": self.reason or None,
            "notes": self.notes,
            "config": dict(self.config),
        }


def _seconds(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else milliseconds // 1000
