"""All workers at once, in a few bytes each: what a page draws of ten thousand, and asks for page by page."""

from dataclasses import dataclass

from strata.observatory.answers.workers import Worker, WorkerStatus

__all__ = ["Fleet", "FleetGroup", "FleetPage", "SlowRank", "Spread"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What the ranks of a task have of something: the least, the median and the most."""

    least: float
    median: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowRank:
    """A rank whose steps take longest; `ratio` is to the median of its task."""

    rank: int
    worker_id: str
    step_time_s: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetGroup:
    """The workers of one task in order of rank; `task_id` is null for those of no task. `states` has one letter for
    each: the first of its status, or s when it is suspect. `ranks` is null where they are 0, 1, 2 and so on.
    `host_sizes` says how many neighbours share a host, host by host."""

    task_id: str | None
    counts: dict[WorkerStatus, int]
    suspect: int
    states: str
    ranks: list[int] | None
    host_sizes: list[int]
    step: Spread | None
    step_time_s: Spread | None
    slowest: list[SlowRank]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """`folded`: there are so many workers that the stream names none of them; GET /api/fleet/workers does."""

    total: int
    folded: bool
    groups: list[FleetGroup]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPage:
    """Some of the workers that were asked for, from place `offset` of `total`."""

    total: int
    offset: int
    workers: list[Worker]
