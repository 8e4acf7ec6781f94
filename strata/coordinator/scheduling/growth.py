"""When an elastic task changes its size: it grows when slots were free for long enough, and does not shrink for a host
that was away for a moment. Starts and stops nothing; what it remembers may be forgotten by a restart.
"""

from collections.abc import Iterable, Sequence

from strata.cluster.tasks import Task
from strata.coordinator.state.commands import ChangeTask
from strata.coordinator.state.endings import plan_leave
from strata.coordinator.state.placement import Host, num_spare
from strata.types.faults import Fault, FaultKind
from strata.types.tasks import TaskStatus

__all__ = ["RETURN_S", "Growth"]

RETURN_S = 2.0  # within which an agent is back that was started anew, or whose coordinator was


class Growth:
    """Remembers since when each task could be larger, and when agents' streams broke. Times are monotonic."""

    def __init__(self, started_at: float) -> None:
        self._started_at = started_at
        self._since: dict[str, float] = {}
        self._broken: dict[str, float] = {}

    def note_broken(self, agent_id: str, at: float) -> None:
        """The stream of this agent has ended."""
        self._broken[agent_id] = at

    def waits(self, task: Task, change: ChangeTask | None, away: Iterable[str], now: float) -> bool:
        """Whether a restart with fewer ranks is too early: the agents that are `away`, but not lost, may be back in a
        moment."""
        if change is None or change.status is not TaskStatus.RUNNING or len(change.course.placement) >= task.size:
            return False
        return any(now - self._broken.get(agent_id, self._started_at) < RETURN_S for agent_id in away)

    def plan(self, task: Task, hosts: Sequence[Host], queued: Iterable[Task], now: float) -> ChangeTask | None:
        """Lets a running task leave for a larger attempt, once there was room for one without interruption for
        `grow_after_s`. Slots that a queued task can use are left to it. `hosts` are those beside the task itself."""
        spec, size = task.spec, task.size
        if task.status is not TaskStatus.RUNNING or size >= spec.worker_count or task.course.leaving:
            self._since.pop(task.task_id, None)
            return None
        room = min(spec.worker_count, num_spare(spec, hosts, queued, size))
        if room <= size:
            self._since.pop(task.task_id, None)
            return None
        if now - self._since.setdefault(task.task_id, now) < spec.grow_after_s:
            return None
        del self._since[task.task_id]
        free = f"{room - size} more slot{'s are' if room - size > 1 else ' is'} free"
        return plan_leave(
            task, f"{free}, so it grows from {size} to {room} ranks", Fault(kind=FaultKind.GROWN, text=free)
        )

    def forget(self, task_id: str) -> None:
        self._since.pop(task_id, None)
