"""Gathers what is known of a task from its records, its timeline and its points, and asks `why` for the verdict."""

from typing import Any

from strata.clock import Clock
from strata.errors import StoreUnavailable, UnknownTask
from strata.observatory.answers.why import Verdict
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.cluster.timeline import Interruption
from strata.observatory.cluster.timelines import RunsOf, Timelines
from strata.observatory.cluster.why import BadPoint, Case, plan_interruption, plan_verdict
from strata.observatory.store.base import Store

__all__ = ["Verdicts"]

_LATE_S = 2.0  # by which a point may bear a later time than the end of its rank

# The first step at which a loss was no number, and the ranks that logged it there.
_BAD = """
SELECT metric, step, toString(any(value)) AS value, groupUniqArray(rank) AS ranks,
       toUnixTimestamp64Milli(min(event_time)) AS ms
FROM {db}.metric_points WHERE run_id IN {runs:Array(String)} AND positionCaseInsensitive(metric, 'loss') > 0
AND NOT isFinite(value) AND event_time >= fromUnixTimestamp64Milli({from_ms:Int64})
AND event_time < fromUnixTimestamp64Milli({to_ms:Int64}) GROUP BY metric, step ORDER BY step, ms LIMIT 1
"""
# The first point after a moment.
_ONWARD = """
SELECT toUnixTimestamp64Milli(min(event_time)) AS ms, count() AS n FROM {db}.metric_points
WHERE run_id IN {runs:Array(String)} AND NOT startsWith(metric, 'sys.')
AND event_time > fromUnixTimestamp64Milli({at_ms:Int64})
"""


class Verdicts:
    """One decider for all who ask. `runs_of` names the runs of a task."""

    def __init__(
        self, published: PublishedCluster, timelines: Timelines, store: Store, clock: Clock, runs_of: RunsOf
    ) -> None:
        self._published = published
        self._timelines = timelines
        self._store = store
        self._clock = clock
        self._runs_of = runs_of

    async def why(self, task_id: str, at: float | None = None) -> Verdict:
        """Of the newest interruption, or of the one nearest to a moment in Unix seconds."""
        records = self._published.followed.records
        task = records.tasks.get(task_id)
        if task is None:
            raise UnknownTask(f"no task {task_id[:80]!r} is known")
        timeline, facts = await self._timelines.known(task_id)
        chosen = plan_interruption(task, timeline, at)
        started = timeline.attempts[chosen.attempt].started_at if chosen and chosen.attempt in timeline.attempts else 0
        case = Case(
            task=task,
            timeline=timeline,
            facts=facts,
            interruption=chosen,
            bad_point=await self._bad_point(task_id, chosen, started) if chosen else None,
            went_on_at=await self._went_on(task_id, chosen.at) if chosen and chosen.in_place else None,
            saved_step=self._timelines.saved_step(task_id),
            restarted_at=records.started_at if records.term > 1 else None,
            hosts={agent.agent_id: agent.hostname or agent.agent_id for agent in records.agents.values()},
            now=self._clock.wall(),
        )
        return plan_verdict(case)

    async def _bad_point(self, task_id: str, chosen: Interruption, started: float) -> BadPoint | None:
        span = {"from_ms": round(started * 1000), "to_ms": round((chosen.at + _LATE_S) * 1000)}
        row = await self._row(_BAD, task_id, span)
        if row is None:
            return None
        ranks = row["ranks"]
        told = {"metric": row["metric"], "value": row["value"], "step": row["step"]}
        return BadPoint(**told, rank=ranks[0] if len(ranks) == 1 else None, at=row["ms"] / 1000)

    async def _went_on(self, task_id: str, at: float) -> float | None:
        row = await self._row(_ONWARD, task_id, {"at_ms": round(at * 1000)})
        return row["ms"] / 1000 if row is not None and row["n"] else None

    async def _row(self, query: str, task_id: str, where: dict[str, Any]) -> dict[str, Any] | None:
        """None when there is none, and while the store is away: a verdict without points is better than no verdict."""
        try:
            rows = (await self._store.query(query, {"runs": self._runs_of(task_id), **where})).to_rows()
        except StoreUnavailable:
            return None
        return rows[0] if rows else None
