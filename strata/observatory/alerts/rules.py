"""Alert rules and targets as people set them: records that validate themselves. Pure; a rule is checked elsewhere."""

import math
import re
from dataclasses import dataclass
from datetime import datetime, time
from typing import Literal, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from strata.errors import InvalidArgument
from strata.observatory.answers.alerts import Severity
from strata.types.names import check_name
from strata.types.shown import check_text

__all__ = ["Comparison", "Rule", "RuleKind", "Target", "TargetKind"]

RuleKind = Literal["threshold", "no_progress", "bad_value", "divergence", "checkpoint_age"]
TargetKind = Literal["webhook", "slack", "email"]
Comparison = Literal["above", "below"]
_NEEDS_METRIC = ("threshold", "bad_value", "divergence")
_MAX_FOR_S = 30 * 86_400.0
_MAX_LIST = 20
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_ADDRESS = re.compile(r"[^@\s<>,;\"]+@[^@\s<>,;\"]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. It holds for runs that `filter` finds (docs/runs.md; empty: all that go on). `for_s` is for how long it
    must be so: of no_progress, how long a run may be silent; of checkpoint_age, how old its newest checkpoint may be.
    A divergence compares with `baseline`, a run's value at the same step, or with `value`."""

    name: str
    kind: RuleKind
    metric: str = ""
    comparison: Comparison = "above"
    value: float | None = None
    for_s: float = 0.0
    filter: str = ""
    baseline: str = ""
    tolerance_percent: float = 10.0
    severity: Severity = "warning"
    targets: tuple[str, ...] = ()
    enabled: bool = True

    def __post_init__(self) -> None:
        check_name("rule", self.name)
        _check_one_of("kind", self.kind, get_args(RuleKind))
        _check_one_of("comparison", self.comparison, get_args(Comparison))
        _check_one_of("severity", self.severity, get_args(Severity))
        check_text("metric", self.metric, 256)
        check_text("filter", self.filter, 2_000)
        check_text("baseline", self.baseline, 256)
        _check_between("for_s", self.for_s, 0.0, _MAX_FOR_S)
        _check_between("tolerance_percent", self.tolerance_percent, 0.0, 1e6)
        if self.kind in _NEEDS_METRIC and not self.metric:
            raise InvalidArgument(f"rule {self.name!r} names no metric", hint=f"A rule of kind {self.kind} needs one.")
        compares = self.kind == "threshold" or (self.kind == "divergence" and not self.baseline)
        if compares and (self.value is None or not math.isfinite(self.value)):
            raise InvalidArgument(f"value of rule {self.name!r} is {self.value}, it must be a finite number")
        if self.kind in ("no_progress", "checkpoint_age") and self.for_s <= 0:
            raise InvalidArgument(f"for_s of rule {self.name!r} is {self.for_s:g}, it must be more than 0 seconds")
        _check_names("targets", self.targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where alerts are sent. A URL and a password are secrets: they are never shown again. With `all_alerts` it gets
    every alert, else those of rules that name it. In quiet hours only critical ones are sent."""

    name: str
    kind: TargetKind
    url: str = ""
    host: str = ""
    port: int = 587
    tls: bool = True
    user: str = ""
    password: str = ""
    sender: str = ""
    recipients: tuple[str, ...] = ()
    all_alerts: bool = False
    quiet_from: str = ""
    quiet_to: str = ""
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        check_name("target", self.name)
        _check_one_of("kind", self.kind, get_args(TargetKind))
        for field in ("url", "host", "user", "password", "sender"):
            _check_line(field, getattr(self, field))
        if self.kind == "email":
            self._check_email()
        elif urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname:
            raise InvalidArgument("url is no http(s) URL", hint="It is not repeated here: it may hold a secret.")
        if bool(self.quiet_from) != bool(self.quiet_to):
            raise InvalidArgument("quiet hours need both quiet_from and quiet_to, or neither")
        for field in ("quiet_from", "quiet_to"):
            given = getattr(self, field)
            if given and not _CLOCK.fullmatch(given):
                raise InvalidArgument(f"{field} is {given[:20]!r}, it must be a time of day such as 22:00")
        try:
            ZoneInfo(self.timezone)
        except (ValueError, OSError):
            raise InvalidArgument(
                f"timezone {self.timezone[:80]!r} is not known here", hint="Write UTC or Europe/Berlin."
            ) from None

    def _check_email(self) -> None:
        if not self.host:
            raise InvalidArgument("host is missing: the SMTP server that takes the mail")
        _check_between("port", self.port, 1, 65_535)
        if not 1 <= len(self.recipients) <= _MAX_LIST:
            raise InvalidArgument(f"{len(self.recipients)} recipients are given, it must be 1 to {_MAX_LIST}")
        for address in (self.sender, *self.recipients):
            if not _ADDRESS.fullmatch(address):
                raise InvalidArgument(f"{address[:80]!r} is no address for mail")

    def is_quiet(self, now: float) -> bool:
        """Whether this moment (Unix seconds) lies in its quiet hours, which may span midnight."""
        if not self.quiet_from:
            return False
        at = datetime.fromtimestamp(now, ZoneInfo(self.timezone)).time()
        start, end = time.fromisoformat(self.quiet_from), time.fromisoformat(self.quiet_to)
        return start <= at < end if start <= end else at >= start or at < end


def _check_one_of(field: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidArgument(f"{field} is {str(value)[:80]!r}, it must be one of {', '.join(allowed)}")


def _check_between(field: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InvalidArgument(f"{field} is {value}, it must be between {low:g} and {high:g}")


def _check_names(field: str, names: tuple[str, ...]) -> None:
    if len(names) > _MAX_LIST:
        raise InvalidArgument(f"{len(names)} {field} are given, at most {_MAX_LIST} are allowed")
    for name in names:
        check_name("target", name)


def _check_line(field: str, value: str) -> None:
    if len(value) > 2_000 or not value.isprintable():
        raise InvalidArgument(f"{field} must be one printable line of at most 2,000 characters")
