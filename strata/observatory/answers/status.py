"""What the observatory says of itself and of its tie to the coordinator."""

from dataclasses import dataclass

__all__ = ["Health", "SetAsideItem", "SetAsidePart", "SpoolDamage", "Status", "Success"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The server answers."""

    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """It was done."""

    success: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsideItem:
    """A thing that could not be dealt with, and how many it stands for."""

    item: str
    reason: str
    at_ms: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsidePart:
    """What one part of the server could not deal with; `items` are the newest few."""

    part: str
    count: int
    items: list[SetAsideItem]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolDamage:
    """Places in the spool that were acknowledged and can be read no more."""

    places: int
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """`uptime` and `started_at` are the coordinator's, null while nothing is known of it; `problem` says why it cannot
    be reached. `metric_store_ready`: it answers, and what it holds is known here."""

    connected: bool
    address: str
    version: str
    storage_backend: str
    metric_store: str
    metric_store_ready: bool
    metric_store_problem: str | None
    spool_backlog_bytes: int
    spool_damage: SpoolDamage
    set_aside: list[SetAsidePart]
    refused_batches: int
    dropped_points: int
    fenced_points: int
    fenced_logs: int
    observatory_started_at_ms: int
    uptime: int | None
    generation: int | None
    term: int | None
    cluster_id: str | None
    started_at: int | None
    started_at_ms: int | None
    problem: str | None
