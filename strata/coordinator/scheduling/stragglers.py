"""Stragglers: a rank whose own part of a step takes far longer than that of most, for minutes, is named; where the task
asks for it, its host is left at an agreed step. Starts and stops nothing; what it remembers may be forgotten by a
restart.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

from strata.cluster.members import Worker
from strata.cluster.tasks import Task
from strata.coordinator.scheduling.progress import status_of
from strata.coordinator.state.commands import ChangeTask
from strata.coordinator.state.endings import plan_change, plan_leave
from strata.coordinator.state.placement import Host, plan_gang
from strata.coordinator.state.pulses import Pulses
from strata.types.faults import Fault, FaultKind
from strata.types.tasks import TaskStatus

__all__ = ["StragglerRule", "Stragglers", "Times"]

_MIN_RANKS = 3  # of two nobody can say which one is the slow one
_COST = 0.1  # of a step: what a straggler costs the others at least


@dataclass(frozen=True, slots=True, kw_only=True)
class StragglerRule:
    """Who is one: for `after_s` beyond `factor` times the median of its task."""

    factor: float = 1.5
    after_s: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slow:
    rank: int
    own_s: float
    times: float  # the median
    for_s: float

    def __str__(self) -> str:
        lasting = f"{self.for_s / 60:.0f} min" if self.for_s >= 60 else f"{self.for_s:.0f} s"
        return f"its own part of a step takes {self.own_s:.3g} s, {self.times:.1f} times the median, for {lasting}"


class Times(NamedTuple):
    """Of a rank: its own part of a step and the whole step, in seconds; 0 for what it has not told."""

    rank: int
    own_s: float
    step_s: float


class Stragglers:
    """Of all tasks of one coordinator: who is slow, and since when."""

    def __init__(self, pulses: Pulses, rule: StragglerRule) -> None:
        self._pulses = pulses
        self._rule = rule
        self._since: dict[str, dict[str, float]] = {}  # task → incarnation → since when it is slow

    def forget(self, task_id: str) -> None:
        self._since.pop(task_id, None)

    def times(self, workers: Iterable[Worker]) -> dict[str, Times]:
        """By incarnation, how long steps of these take."""
        return {worker.incarnation: self._times_of(worker) for worker in workers}

    def plan(
        self, task: Task, times: Mapping[str, Times], hosts: Callable[[], Sequence[Host]], now: float
    ) -> ChangeTask | None:
        """A straggler is named, or no longer one, or its host is left; None when all is as it was. `times` are those of
        all ranks, `hosts` those beside the task itself."""
        course = task.course
        if course.leaving or course.stuck_rank is not None:
            return None
        slow = self._slowest(task, times, now)
        if slow is None:
            cleared = replace(course, slow_rank=None)
            told = f"attempt {task.attempt}, and no rank is slow any more"
            return None if course.slow_rank is None else plan_change(task, task.status, told, cleared)
        agent_id = course.placement[slow.rank]
        told = f"rank {slow.rank} on {agent_id} holds up the others: {slow}"
        if task.spec.exclude_stragglers and _is_better_without(task, agent_id, slow, hosts()):
            left = replace(course, excluded=(*course.excluded, agent_id), slow_rank=slow.rank)
            fault = Fault(kind=FaultKind.STRAGGLER, rank=slow.rank, agent_id=agent_id, text=str(slow))
            return plan_leave(replace(task, course=left), f"{told}; that host is left", fault)
        if course.slow_rank == slow.rank:
            return None
        kept = "; leaving its host would not make it quicker" if task.spec.exclude_stragglers else ""
        return plan_change(task, TaskStatus.RUNNING, f"{told}{kept}", replace(course, slow_rank=slow.rank))

    def _slowest(self, task: Task, known: Mapping[str, Times], now: float) -> _Slow | None:
        """The slowest of those that have been stragglers for long enough."""
        told = [own_s for _, own_s, _ in known.values() if own_s > 0]
        usual = median(told) if len(told) >= _MIN_RANKS else math.inf
        before = self._since.pop(task.task_id, {})
        since = {
            name: before.get(name, now)
            for name, (_, own_s, step_s) in known.items()
            if own_s > self._rule.factor * usual and own_s - usual > _COST * step_s
        }
        if since:
            self._since[task.task_id] = since
        after_s = self._rule.after_s
        late = [(known[name].own_s, known[name].rank, now - at) for name, at in since.items() if now - at >= after_s]
        if not late:
            return None
        own_s, rank, for_s = max(late)
        return _Slow(rank=rank, own_s=own_s, times=own_s / usual, for_s=for_s)

    def _times_of(self, worker: Worker) -> Times:
        status = status_of(worker, self._pulses)
        if status is None or not (math.isfinite(status.own_time_s) and math.isfinite(status.step_time_s)):
            return Times(worker.rank, 0.0, 0.0)
        return Times(worker.rank, max(0.0, status.own_time_s), max(0.0, status.step_time_s))


def _is_better_without(task: Task, agent_id: str, slow: _Slow, hosts: Sequence[Host]) -> bool:
    """Whether the ranks that the other hosts have room for do a step sooner: each has more to do when they are fewer,
    and nobody waits for the slow one."""
    spec = task.spec
    others = [host for host in hosts if host.agent_id != agent_id]
    plan = plan_gang(spec.worker_count, spec.launcher, others, least=spec.least_workers, gpus=spec.gpus_per_worker)
    return isinstance(plan, tuple) and len(plan) * slow.times > task.size
