"""What a detector saw, before it becomes an alert."""

from dataclasses import dataclass

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
