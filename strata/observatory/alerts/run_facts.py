"""What is known of the runs that a rule is about: from the live view, the cluster's records and, for a baseline, the
store."""

import math
from collections.abc import Iterable

from strata.errors import StoreUnavailable
from strata.observatory.alerts.rule_checks import RunFacts
from strata.observatory.alerts.rules import Rule
from strata.observatory.answers.runs import RunInfo
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.live.view import LiveView
from strata.observatory.search.table import RunSearch
from strata.observatory.store.base import Store

__all__ = ["RunFactReader"]

_MAX_RUNS = 500  # that one rule is held against
_AT_STEP = """
SELECT avg(v) AS value, count() AS n FROM (
    SELECT rank, argMax(value, (step, event_time)) AS v FROM {db}.metric_points
    WHERE run_id = {run:String} AND metric = {metric:String} AND step <= {step:UInt64} GROUP BY rank
)
"""


class RunFactReader:
    """Reads; changes nothing."""

    def __init__(self, live: LiveView, published: PublishedCluster, store: Store) -> None:
        self._live = live
        self._published = published
        self._store = store
        self._search = RunSearch(live)

    @property
    def is_whole(self) -> bool:
        """False until what earlier processes accepted is loaded: before that a run may look silent or new."""
        return self._live.is_whole

    def runs(self, rule: Rule) -> Iterable[RunInfo]:
        """Those that go on; a run that ended is no concern of a rule."""
        found = self._search.find(rule.filter, "", descending=True)
        return [run for run in found if run.state == "running"][:_MAX_RUNS]

    async def of(self, rule: Rule, run: RunInfo) -> RunFacts:
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
            row = (await self._store.query(_AT_STEP, asked)).to_rows()[0]
        except StoreUnavailable:
            return None
        return row["value"] if row["n"] and math.isfinite(row["value"]) else None
