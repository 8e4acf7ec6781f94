"""Looks every few seconds whether a rule of somebody holds for a run, and since when; then it becomes an alert."""

import asyncio
import itertools
from dataclasses import dataclass, field

from strata.clock import Clock
from strata.observatory.alerts.book import AlertBook
from strata.observatory.alerts.deliveries import Deliveries
from strata.observatory.alerts.rule_book import RuleBook
from strata.observatory.alerts.rule_checks import check_rule, finding_of
from strata.observatory.alerts.rules import Rule
from strata.observatory.alerts.run_facts import RunFactReader
from strata.observatory.answers.rules import RuleState
from strata.observatory.background.part import Part

__all__ = ["RuleWatch", "RuleWatcher"]

_EVERY_S = 2.0


@dataclass(slots=True)
class RuleWatch:
    """What the last look at one rule found. `since` is by run, from the first look at which the rule held for it. The
    `number` is its own: what a deleted rule found does not silence a new one of the same name."""

    number: int
    since: dict[str, float] = field(default_factory=dict)
    num_firing: int = 0

    def state_of(self, rule: Rule) -> RuleState:
        if not rule.enabled:
            return "off"
        if self.num_firing:
            return "firing"
        return "waiting" if self.since else "quiet"


class RuleWatcher(Part):
    """Remembers since when each rule holds for each run; a restart begins to count anew."""

    def __init__(
        self, book: RuleBook, deliveries: Deliveries, alerts: AlertBook, facts: RunFactReader, clock: Clock
    ) -> None:
        self._book = book
        self._deliveries = deliveries
        self._alerts = alerts
        self._facts = facts
        self._clock = clock
        self._watches: dict[str, RuleWatch] = {}
        self._numbers = itertools.count()

    def watch_of(self, name: str) -> RuleWatch:
        return self._watches.get(name) or RuleWatch(number=-1)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            rules = self._book.rules
            self._watches = {name: watch for name, watch in self._watches.items() if name in rules}
            self._deliveries.log.forget_rules(rules)
            for rule in list(rules.values()):
                with self._book.aside.guard("alert rules", f"rule {rule.name}"):
                    if self._facts.is_whole:
                        await self.look(rule)

    async def look(self, rule: Rule) -> None:
        """One look at all runs that the rule is about; at none while it is off."""
        now = self._clock.wall()
        watch = self._watches.get(rule.name)
        if watch is None:
            watch = self._watches[rule.name] = RuleWatch(number=next(self._numbers))
        found, since = [], {}
        for run in self._facts.runs(rule) if rule.enabled else ():
            what = check_rule(rule, run, await self._facts.of(rule, run), now)
            if not what:
                continue
            since[run.run_id] = watch.since.get(run.run_id, now)
            lasting = rule.kind in ("threshold", "divergence")
            if not lasting or now - since[run.run_id] >= rule.for_s:
                found.append(finding_of(rule, run, what, watch.number))
        watch.since, watch.num_firing = since, len(found)
        for alert in self._alerts.report(found):
            self._deliveries.log.note_fired(rule.name, alert)
            self._deliveries.offer_to(rule.targets, alert)
