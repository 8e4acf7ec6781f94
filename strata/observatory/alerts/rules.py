"""Alert rules and targets as people set them: records that validate themselves. Pure; a rule is checked elsewhere."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, time, tzinfo
from typing import get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from strata.errors import InvalidArgument
from strata.observatory.answers.alerts import Severity
from strata.observatory.answers.rules import Comparison, RuleKind, TargetKind
from strata.observatory.search.query import parse
from strata.types.names import check_name
from strata.types.shown import check_text

__all__ = ["Rule", "Target"]

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
        with _about("name"):
            check_name("rule", self.name)
        _check_one_of("kind", self.kind, get_args(RuleKind))
        _check_one_of("comparison", self.comparison, get_args(Comparison))
        _check_one_of("severity", self.severity, get_args(Severity))
        for field, most in (("metric", 256), ("filter", 2_000), ("baseline", 256)):
            with _about(field):
                check_text(field, getattr(self, field), most)
        with _about("filter"):
            parse(self.filter)
        _check_between("for_s", self.for_s, 0.0, _MAX_FOR_S)
        _check_between("tolerance_percent", self.tolerance_percent, 0.0, 1e6)
        with _about("targets"):
            if len(self.targets) > _MAX_LIST:
                raise InvalidArgument(f"{len(self.targets)} targets are given, at most {_MAX_LIST} are allowed")
            for name in self.targets:
                check_name("target", name)
        self._check_kind()

    def _check_kind(self) -> None:
        """What this kind needs beyond the others."""
        if self.kind in _NEEDS_METRIC and not self.metric:
            raise InvalidArgument(
                "no metric is named", hint="Write it as the script logs it, such as train/loss.", field="metric"
            )
        compares = self.kind == "threshold" or (self.kind == "divergence" and not self.baseline)
        if compares and (self.value is None or not math.isfinite(self.value)):
            either = ", or a baseline must be named" if self.kind == "divergence" else ""
            raise InvalidArgument(f"value is {self.value}, it must be a finite number{either}", field="value")
        if self.kind in ("no_progress", "checkpoint_age") and self.for_s <= 0:
            raise InvalidArgument(f"for_s is {self.for_s:g}, it must be more than 0 seconds", field="for_s")


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
        with _about("name"):
            check_name("target", self.name)
        _check_one_of("kind", self.kind, get_args(TargetKind))
        for field in ("url", "host", "user", "password", "sender"):
            given = getattr(self, field)
            if len(given) > 2_000 or not given.isprintable():
                raise InvalidArgument(f"{field} must be one printable line of at most 2,000 characters", field=field)
        if self.kind == "email":
            self._check_email()
        else:
            _check_url(self.url)
        self._check_quiet_hours()

    def _check_quiet_hours(self) -> None:
        for field in ("quiet_from", "quiet_to"):
            given = getattr(self, field)
            if not given and (self.quiet_from or self.quiet_to):
                raise InvalidArgument("quiet hours need both quiet_from and quiet_to, or neither", field=field)
            if given and not _CLOCK.fullmatch(given):
                told = f"{field} is {given[:20]!r}, it must be a time of day such as 22:00"
                raise InvalidArgument(told, field=field)
        try:
            _zone(self.timezone)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            told = f"timezone {self.timezone[:80]!r} is not known here"
            raise InvalidArgument(told, hint="Write UTC or Europe/Berlin.", field="timezone") from None

    def _check_email(self) -> None:
        if not self.host:
            raise InvalidArgument("host is missing: the SMTP server that takes the mail", field="host")
        _check_between("port", self.port, 1, 65_535)
        if not 1 <= len(self.recipients) <= _MAX_LIST:
            told = f"{len(self.recipients)} recipients are given, it must be 1 to {_MAX_LIST}"
            raise InvalidArgument(told, field="recipients")
        for field, addresses in (("sender", (self.sender,)), ("recipients", self.recipients)):
            for address in addresses:
                if not _ADDRESS.fullmatch(address):
                    raise InvalidArgument(f"{address[:80]!r} is no address for mail", field=field)

    def is_quiet(self, now: float) -> bool:
        """Whether this moment (Unix seconds) lies in its quiet hours, which may span midnight."""
        if not self.quiet_from:
            return False
        at = datetime.fromtimestamp(now, _zone(self.timezone)).time()
        start, end = time.fromisoformat(self.quiet_from), time.fromisoformat(self.quiet_to)
        return start <= at < end if start <= end else at >= start or at < end


def _zone(name: str) -> tzinfo:
    """UTC is known without a list of zones, which a small image lacks: the default is never refused."""
    return UTC if name == "UTC" else ZoneInfo(name)


@contextmanager
def _about(field: str) -> Iterator[None]:
    """A refusal from within is about this field: a form shows it there."""
    try:
        yield
    except InvalidArgument as error:
        error.field = field
        raise


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port of 99,999, half of an IPv6 address
        is_web = False
    if not is_web:
        raise InvalidArgument(
            "url is no http(s) URL", hint="It is not repeated here: it may hold a secret.", field="url"
        )


def _check_one_of(field: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidArgument(f"{field} is {str(value)[:80]!r}, it must be one of {', '.join(allowed)}", field=field)


def _check_between(field: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise InvalidArgument(f"{field} is {value:g}, it must be between {low:g} and {high:g}", field=field)
