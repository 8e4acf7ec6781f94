"""Alert rules and targets as REST shows them: of a secret only whether there is one."""

from dataclasses import dataclass
from typing import Literal

from strata.observatory.answers.alerts import Alert, Severity

__all__ = [
    "AlertRules",
    "Comparison",
    "Delivery",
    "DeliveryState",
    "RuleInfo",
    "RuleKind",
    "RuleState",
    "TargetInfo",
    "TargetKind",
]

RuleKind = Literal["threshold", "no_progress", "bad_value", "divergence", "checkpoint_age"]
TargetKind = Literal["webhook", "slack", "email"]
Comparison = Literal["above", "below"]
RuleState = Literal["off", "quiet", "waiting", "firing"]
DeliveryState = Literal["waiting", "sent", "failed", "quieted", "dropped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What became of one alert at one target, and when. `problem` says why it was not sent, or not yet."""

    target: str
    state: DeliveryState
    at_ms: int | None
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleInfo:
    """A rule as it was set, and how it stands: `waiting` holds for some run, but not yet for `for_s`; `firing` does for
    `num_firing` runs. `last_alert` is its newest one, with what became of it."""

    name: str
    kind: RuleKind
    metric: str
    comparison: Comparison
    value: float | None
    for_s: float
    filter: str
    baseline: str
    tolerance_percent: float
    severity: Severity
    targets: list[str]
    enabled: bool
    state: RuleState
    num_firing: int
    last_alert: Alert | None
    deliveries: list[Delivery]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetInfo:
    """A target, and what became of its alerts: the last one was sent at `last_at_ms`
    or, with a `problem`, given up then. `place` is the server that gets them; the rest of a URL is a secret."""

    name: str
    kind: TargetKind
    place: str
    host: str
    port: int
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
    last_at_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRules:
    """All of them, in the order in which they were made."""

    rules: list[RuleInfo]
    targets: list[TargetInfo]
