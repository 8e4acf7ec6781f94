"""Looks every few seconds whether a rule of somebody holds for a run, and since when; then it becomes an alert."""

import asyncio
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleWatch:
    """What the last look at one rule found: for how many runs it holds, and for how many it has for long enough."""

    num_holding: int = 0
    num_firing: int = 0

    def state_of(self, rule: Rule) -> RuleState:
        if not rule.enabled:
            return "off"
        if self.num_firing:
            return "firing"
        return "waiting" if self.num_holding else "quiet"


class RuleWatcher(Part):
    """Since when each rule holds for each run is kept with what was told: a restart neither counts nor tells anew."""

    def __init__(
        self, book: RuleBook, deliveries: Deliveries, alerts: AlertBook, facts: RunFactReader, clock: Clock
    ) -> None:
        self._book = book
        self._deliveries = deliveries
        self._log = deliveries.log
        self._alerts = alerts
        self._facts = facts
        self._clock = clock
        self._watches: dict[str, RuleWatch] = {}

    def watch_of(self, name: str) -> RuleWatch:
        return self._watches.get(name) or RuleWatch()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            rules = self._book.rules
            self._watches = {name: watch for name, watch in self._watches.items() if name in rules}
            self._log.forget_rules(rules)
            for rule in list(rules.values()):
                with self._book.aside.guard("alert rules", f"rule {rule.name}"):
                    if self._facts.is_whole:
                        await self.look(rule)

    async def look(self, rule: Rule) -> None:
        """One look at all runs that the rule is about; at none while it is off."""
        now, before = self._clock.wall(), self._log.since.get(rule.name, {})
        found, since = [], {}
        for run in self._facts.runs(rule) if rule.enabled else ():
            what = check_rule(rule, run, await self._facts.of(rule, run), now)
            if not what:
                continue
            since[run.run_id] = before.get(run.run_id, now)
            lasting = rule.kind in ("threshold", "divergence")
            if not lasting or now - since[run.run_id] >= rule.for_s:
                found.append(finding_of(rule, run, what))
        self._log.note_since(rule.name, since)
        self._watches[rule.name] = RuleWatch(num_holding=len(since), num_firing=len(found))
        for alert in self._alerts.report(found):
            self._log.note_fired(rule.name, alert)
            self._deliveries.offer_to(rule.targets, alert)
