"""Alert rules and targets as REST shows them: of a secret only whether there is one."""

from dataclasses import dataclass

from strata.observatory.answers.alerts import Severity

__all__ = ["AlertRules", "RuleInfo", "TargetInfo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleInfo:
    """A rule as it was set."""

    name: str
    kind: str
    metric: str
    comparison: str
    value: float | None
    for_s: float
    filter: str
    baseline: str
    tolerance_percent: float
    severity: Severity
    targets: list[str]
    enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetInfo:
    """A target, and what became of its alerts since this observatory started. `place` is the server that gets them;
    the rest of a URL is a secret."""

    name: str
    kind: str
    place: str
    tls: bool
    user: str
    has_password: bool
    sender: str
    recipients: list[str]
    all_alerts: bool
    quiet_from: str
    quiet_to: str
    timezone: str
    sent: int
    failed: int
    dropped: int
    quieted: int
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRules:
    """All of them, by name."""

    rules: list[RuleInfo]
    targets: list[TargetInfo]
