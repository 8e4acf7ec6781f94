"""One line of a log, whoever wrote it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from strata.errors import InvalidArgument

__all__ = ["LogEntry", "LogLevel"]

_ALIASES = {
    "warning": "warn",
    "critical": "error",
    "fatal": "error",
    "trace": "debug",
    "notice": "info",
    "err": "error",
}


class LogLevel(StrEnum):
    """The four levels of the specification."""

    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"

    @classmethod
    def parse(cls, text: str) -> "LogLevel":
        """Also understands other libraries' names (WARNING, CRITICAL, …); an empty one is info."""
        lowered = text.strip().lower()
        try:
            return cls(_ALIASES.get(lowered, lowered or "info"))
        except ValueError:
            raise InvalidArgument(f"log level {text[:40]!r} is unknown", hint=f"Allowed: {', '.join(cls)}.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """As REST and SSE show it. `id` grows with time, so it is also the cursor for the next page."""

    id: str
    time_ms: int
    level: str
    message: str
    source: str
    task_id: str | None = None
    worker_id: str | None = None
    rank: int | None = None
    host: str = ""
    stream: str = ""
    attempt: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "timestamp": self.time_ms // 1000,
            "timestamp_ms": self.time_ms,
            "level": self.level,
            "message": self.message,
            "source": self.source,
            "task_id": self.task_id,
            "worker_id": self.worker_id,
            "rank": self.rank,
            "host": self.host,
            "stream": self.stream,
            "attempt": self.attempt,
        }
