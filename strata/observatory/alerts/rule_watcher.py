"""Looks every few seconds whether a rule of somebody holds for a run, and since when; then it becomes an alert."""

import asyncio
import math
from collections.abc import Iterable

from strata.clock import Clock
from strata.errors import StoreUnavailable
from strata.observatory.alerts.book import AlertBook
from strata.observatory.alerts.deliveries import Deliveries
from strata.observatory.alerts.rule_book import RuleBook
from strata.observatory.alerts.rule_checks import RunFacts, check_rule, finding_of
from strata.observatory.alerts.rules import Rule
from strata.observatory.answers.runs import RunInfo
from strata.observatory.background.part import Part
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.live.view import LiveView
from strata.observatory.search.table import RunSearch
from strata.observatory.store.base import Store

__all__ = ["RuleWatcher"]

_EVERY_S = 2.0
_MAX_RUNS = 500  # that one rule is held against
_AT_STEP = """
SELECT avg(v) AS value, count() AS n FROM (
    SELECT rank, argMax(value, (step, event_time)) AS v FROM {db}.metric_points
    WHERE run_id = {run:String} AND metric = {metric:String} AND step <= {step:UInt64} GROUP BY rank
)
"""


class RuleWatcher(Part):
    """Remembers since when each rule holds for each run; a restart begins to count anew."""

    def __init__(
        self,
        book: RuleBook,
        deliveries: Deliveries,
        alerts: AlertBook,
        live: LiveView,
        published: PublishedCluster,
        store: Store,
        clock: Clock,
    ) -> None:
        self._book = book
        self._deliveries = deliveries
        self._alerts = alerts
        self._live = live
        self._published = published
        self._store = store
        self._clock = clock
        self._search = RunSearch(live)
        self._since: dict[tuple[str, str], float] = {}

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_S)
            for rule in list(self._book.rules.values()):
                with self._published.aside.guard("alert rules", f"rule {rule.name}"):
                    if rule.enabled and self._live.is_whole:
                        await self.look(rule)

    async def look(self, rule: Rule) -> None:
        """One look at all runs that the rule is about."""
        now = self._clock.wall()
        found = []
        held = set()
        for run in self._runs(rule):
            what = check_rule(rule, run, await self._facts(rule, run), now)
            key = (rule.name, run.run_id)
            if not what:
                continue
            held.add(key)
            since = self._since.setdefault(key, now)
            lasting = rule.kind in ("threshold", "divergence")
            if not lasting or now - since >= rule.for_s:
                found.append(finding_of(rule, run, what))
        for key in [key for key in self._since if key[0] == rule.name and key not in held]:
            del self._since[key]
        for alert in self._alerts.report(found):
            self._deliveries.offer_to(rule.targets, alert)

    def _runs(self, rule: Rule) -> Iterable[RunInfo]:
        """Those that go on; a run that ended is no concern of a rule."""
        found = self._search.find(rule.filter, "", descending=True)
        return [run for run in found if run.state == "running"][:_MAX_RUNS]

    async def _facts(self, rule: Rule, run: RunInfo) -> RunFacts:
        if rule.kind == "checkpoint_age":
            return RunFacts(saved_at=self._saved_at(run))
        if not rule.metric:
            return RunFacts()
        last, num_bad = self._live.summaries.newest(run.run_id, rule.metric)
        if rule.kind == "divergence" and rule.baseline and last is not None:
            return RunFacts(last=last, expected=await self._expected(rule, run.latest_step or 0))
        return RunFacts(last=last, num_bad=num_bad)

    def _saved_at(self, run: RunInfo) -> float | None:
        """None for a run without a task that runs: nobody knows of its checkpoints."""
        records = self._published.followed.records
        task = records.tasks.get(run.task_id or run.run_id)
        if task is None or task.started_at is None or task.status != "running":
            return None
        saved = records.checkpoints.latest(task.task_id)
        return max(task.started_at, saved.created_at) if saved is not None else task.started_at

    async def _expected(self, rule: Rule, step: int) -> float | None:
        asked = {"run": rule.baseline, "metric": rule.metric, "step": step}
        try:
            row = (await self._store.query(_AT_STEP, asked)).to_pylist()[0]
        except StoreUnavailable:
            return None
        return row["value"] if row["n"] and math.isfinite(row["value"]) else None
