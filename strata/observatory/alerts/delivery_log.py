"""What became of alerts: what was found lately, who was sent which and when, what still waits; and of each rule since
when it holds and its last alert. Kept in one file of the data folder, so that a restart forgets none of it.
"""

import json
from collections import deque
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strata.datadir import write_private
from strata.observatory.alerts.rule_checks import is_of_rule
from strata.observatory.answers.alerts import Alert
from strata.observatory.answers.rules import Delivery
from strata.observatory.background.setaside import SetAside
from strata.observatory.records.finding import Finding
from strata.types.plain import from_plain, to_plain

__all__ = ["DeliveryLog", "Post"]

_PART = "alert deliveries"
_MAX_TOLD = 1_000  # alerts of which is remembered who got them
_MAX_FOUND = 10_000
_QUIET_S = 300.0
_KEPT = ("sent", "failed", "dropped", "quieted", "problem", "last_at")


@dataclass(slots=True)
class Post:
    """What became of alerts for one target. `dropped` did not fit into the queue; `quieted` came in quiet hours.
    `last_at` is when the last one was sent or given up (Unix seconds), `problem` why it was not sent. The first one
    that waits may be on its way."""

    waiting: deque[Alert] = field(default_factory=deque)
    sent: int = 0
    failed: int = 0
    dropped: int = 0
    quieted: int = 0
    problem: str = ""
    last_at: float | None = None
    busy: bool = False


class DeliveryLog:
    """Changed on the loop only; `changed` says that the file is behind. What a kill takes is the last second: an alert
    that was found or sent in it may be told again, or be forgotten here."""

    def __init__(self, path: Path, aside: SetAside) -> None:
        self._path = path
        self._aside = aside
        self.found: dict[tuple[str, str], float] = {}  # kind and subject, when it was last found; the oldest first
        self.posts: dict[str, Post] = {}
        self.told: dict[str, dict[str, Delivery]] = {}  # by alert and target, the oldest first
        self.fired: dict[str, Alert] = {}  # the last one of each rule
        self.since: dict[str, dict[str, float]] = {}  # by rule and run, from when on it holds (Unix seconds)
        self.changed = False

    def load(self, now: float) -> None:
        """What cannot be read is set aside, piece by piece. What had been found lately counts as found now (on the
        monotonic clock): nobody looked meanwhile."""
        if not self._path.exists():
            return
        kept: dict[str, Any] = {}
        with self._aside.guard(_PART, str(self._path)):
            kept = {name: dict(found) for name, found in json.loads(self._path.read_text()).items()}
        for kind, subjects in kept.get("found", {}).items():
            with self._aside.guard(_PART, f"what was found of {kind}"):
                self.found |= {(kind, str(subject)): now for subject in subjects}
        for name, given in kept.get("posts", {}).items():
            with self._aside.guard(_PART, f"target {name}"):
                waiting = deque(from_plain(Alert, one) for one in given["waiting"])
                self.posts[name] = Post(waiting=waiting, **{one: given[one] for one in _KEPT})
        for alert_id, given in kept.get("told", {}).items():
            with self._aside.guard(_PART, f"alert {alert_id}"):
                self.told[alert_id] = {one["target"]: from_plain(Delivery, one) for one in given}
        for name, given in kept.get("fired", {}).items():
            with self._aside.guard(_PART, f"rule {name}"):
                self.fired[name] = from_plain(Alert, given)
        for name, given in kept.get("since", {}).items():
            with self._aside.guard(_PART, f"since when rule {name} holds"):
                self.since[name] = {run_id: float(at) for run_id, at in given.items()}

    def take_new(self, findings: list[Finding], now: float) -> list[Finding]:
        """Those that were not found in the last five minutes; all of them count as found now."""
        while self.found and now - next(iter(self.found.values())) >= _QUIET_S:
            self._forget_found([next(iter(self.found))])
        return [finding for finding in findings if self._is_new(finding, now)]

    def _is_new(self, finding: Finding, now: float) -> bool:
        key = (finding.kind, finding.subject)
        known = self.found.pop(key, None) is not None
        self.found[key] = now
        if known:
            return False
        self.changed = True
        if len(self.found) > _MAX_FOUND:
            self._forget_found([next(iter(self.found))])
        return True

    def _forget_found(self, keys: list[tuple[str, str]]) -> None:
        for key in keys:
            del self.found[key]
            self.changed = True

    def post_of(self, name: str) -> Post:
        return self.posts.setdefault(name, Post())

    def of_alert(self, alert_id: str) -> list[Delivery]:
        """What became of one alert at each of its targets; empty for one that is long past."""
        return list(self.told.get(alert_id, {}).values())

    def note_fired(self, rule: str, alert: Alert) -> None:
        self.fired[rule] = alert
        self.changed = True

    def note_since(self, rule: str, since: dict[str, float]) -> None:
        if since != self.since.get(rule, {}):
            self.since[rule] = since
            self.changed = True

    def forget_rules(self, known: Container[str]) -> None:
        """All but these: a new rule with the name of a deleted one has neither held nor fired."""
        for name in [name for name in self.fired.keys() | self.since.keys() if name not in known]:
            self.fired.pop(name, None)
            self.since.pop(name, None)
            self._forget_found([key for key in self.found if is_of_rule(name, *key)])
            self.changed = True

    def note(self, alert: Alert, delivery: Delivery) -> None:
        self.told.setdefault(alert.id, {})[delivery.target] = delivery
        while len(self.told) > _MAX_TOLD:
            del self.told[next(iter(self.told))]
        self.changed = True

    def plain(self) -> dict[str, Any]:
        """As it is kept."""
        self.changed = False
        lately: dict[str, list[str]] = {}
        for kind, subject in self.found:
            lately.setdefault(kind, []).append(subject)
        return {
            "found": lately,
            "posts": {
                name: {
                    **{one: getattr(post, one) for one in _KEPT},
                    "waiting": [to_plain(alert) for alert in post.waiting],
                }
                for name, post in self.posts.items()
            },
            "told": {key: [to_plain(one) for one in found.values()] for key, found in self.told.items()},
            "fired": {name: to_plain(alert) for name, alert in self.fired.items()},
            "since": {name: dict(since) for name, since in self.since.items() if since},
        }

    def write(self, kept: dict[str, Any]) -> None:
        """On any thread; raises OSError."""
        write_private(self._path, json.dumps(kept))
