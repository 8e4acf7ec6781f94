"""What a detector saw, before it becomes an alert."""

from dataclasses import dataclass
from typing import Any

from strata.observatory.answers.alerts import Severity

__all__ = ["Finding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`subject` names the thing it is about: the same kind and subject again within a while is the same alert."""

    kind: str
    severity: Severity
    message: str
    subject: str
    run_id: str | None = None
    task_id: str | None = None
    worker_id: str | None = None
    rank: int | None = None
    step: int | None = None

    @classmethod
    def of_task(cls, task_id: str | None, **told: Any) -> "Finding":
        """About a task, if there is one: its run has its id."""
        return cls(run_id=task_id or None, task_id=task_id or None, **told)
