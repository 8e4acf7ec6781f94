"""What a detector found, as REST, the stream and the webhook tell it."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Alert", "Severity"]

Severity = Literal["info", "warning", "critical"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An alert, and the place it is about as far as it is known."""

    id: str
    timestamp: int
    timestamp_ms: int
    kind: str
    severity: Severity
    message: str
    run_id: str | None
    task_id: str | None
    worker_id: str | None
    rank: int | None
    step: int | None
