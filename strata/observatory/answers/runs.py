"""Runs as REST and the stream show them."""

from dataclasses import dataclass
from typing import Any

from strata.observatory.answers.series import RunSeries
from strata.types.metrics import RunState

__all__ = [
    "AttemptBegan",
    "MetricName",
    "MetricSummary",
    "PointsAccepted",
    "RunDeleted",
    "RunInfo",
    "RunMetrics",
    "RunOrigin",
    "RunSummary",
    "RunTable",
    "RunsChanged",
    "TextEntry",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptBegan:
    """A later attempt, or the same one after a rank was replaced in place. `step` is the first that it does again, null
    when nobody knows."""

    attempt: int
    step: int | None
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrigin:
    """The run that a fork went on from, after this step."""

    run_id: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A run; what nobody said is null. `attempts` are those after its first one; `superseded_points` are of steps that
    a later attempt did again, and not among its `num_points`. `state` is decided by the observatory, `reason` says why,
    and `status` is the last word of the run's owner. Tags, group and notes are what people wrote, else what
    its script said; runs that are `archived` are kept and left out of lists. `wide_metrics` have more series than a
    sparse stream carries, with their number: it carries the first few."""

    run_id: str
    start_time: int | None
    start_time_ms: int | None
    last_event_time: int | None
    last_event_time_ms: int | None
    latest_step: int | None
    is_active: bool
    num_series: int
    num_points: int
    wide_metrics: dict[str, int]
    superseded_points: int
    attempts: list[AttemptBegan]
    task_id: str | None
    name: str | None
    project: str | None
    status: str | None
    state: RunState
    reason: str | None
    notes: str | None
    tags: list[str]
    group: str | None
    job_type: str | None
    archived: bool
    config: dict[str, Any]
    forked_from: RunOrigin | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """`last` is the mean over ranks; null when there is no finite value."""

    last: float | None
    min: float | None
    max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run as a whole: figures of each metric, and the values that its script has set."""

    run_id: str
    metrics: dict[str, MetricSummary]
    values: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricName:
    """A metric that was logged, and the newest run that has it."""

    metric: str
    run: RunInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTable:
    """Runs that a filter lets through, in order: `ids` are the first of them, `columns` their values in the same order,
    null where a run has none. `names` are the columns that could be asked for."""

    total: int
    matched: int
    ids: list[str]
    columns: dict[str, list[Any]]
    names: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextEntry:
    """Something that a run logged and that is no number."""

    metric: str
    host: str
    rank: int
    attempt: int
    step: int
    event_time_ms: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDeleted:
    """A run is gone; its rows follow by themselves when the store is slow or away."""

    success: bool
    rows_removed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsChanged:
    """How many runs were changed."""

    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMetrics:
    """Series of a run."""

    run_id: str
    series: list[RunSeries]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsAccepted:
    """How many points were taken."""

    accepted: int
