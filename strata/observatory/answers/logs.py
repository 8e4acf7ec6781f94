"""A line of a log as REST and the stream show it."""

from dataclasses import dataclass

from strata.types.logs import LogLevel

__all__ = ["LogEntry"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """`id` grows with time, so it is also the cursor for the next page."""

    id: str
    timestamp: int
    timestamp_ms: int
    level: LogLevel
    message: str
    source: str
    task_id: str | None
    worker_id: str | None
    rank: int | None
    host: str
    stream: str
    attempt: int
