"""What runs on a host that goes away: its tasks leave at an agreed step, and it is said up front when a save may take
longer than there is time. Decides; carries nothing out.
"""

from collections.abc import Sequence

from strata.cluster.members import Agent
from strata.cluster.tasks import Task
from strata.coordinator.scheduling.parting import HEARING_S
from strata.coordinator.state.commands import ChangeTask
from strata.coordinator.state.endings import plan_leave
from strata.coordinator.state.now import Now
from strata.types.checkpoints import CheckpointInfo
from strata.types.faults import Fault, FaultKind

__all__ = ["hearing_s", "plan_departure"]

_MIN_HEARING_S = 0.5


def plan_departure(
    task: Task, going: Sequence[Agent], asked: Sequence[int], saved: CheckpointInfo | None, now: Now
) -> ChangeTask | None:
    """A running task leaves when a host of its ranks goes away, or when somebody has sent one of them SIGTERM; None
    when it has no reason to, or is leaving already. `going` are those hosts, and `asked` those ranks."""
    if task.course.leaving:
        return None
    if going:
        names = ", ".join(sorted({agent.hostname or agent.agent_id for agent in going}))
        reasons = "; ".join(dict.fromkeys(agent.draining for agent in going))
        why = f"host {names} goes away ({reasons}){_doubt(going, saved, now)}"
        return plan_leave(task, why, Fault(kind=FaultKind.DRAINED, agent_id=going[0].agent_id, text=reasons))
    if not asked:
        return None
    rank = asked[0]
    fault = Fault(kind=FaultKind.ASKED, rank=rank, agent_id=task.course.placement[rank])
    return plan_leave(task, f"rank {rank} was sent SIGTERM", fault)


def hearing_s(going: Sequence[Agent], saved: CheckpointInfo | None, now: Now) -> float:
    """How far ahead the agreed step may lie: as near as can be when the save will hardly find the time."""
    left = _time_left(going, now)
    if left is None:
        return HEARING_S
    took = saved.duration_s or 0.0 if saved is not None else 0.0
    return min(HEARING_S, max(_MIN_HEARING_S, (left - took) / 4))


def _time_left(going: Sequence[Agent], now: Now) -> float | None:
    return min((agent.deadline - now.wall for agent in going if agent.deadline is not None), default=None)


def _doubt(going: Sequence[Agent], saved: CheckpointInfo | None, now: Now) -> str:
    """What is said up front when the last save took longer than there is time now."""
    left, took = _time_left(going, now), saved.duration_s if saved is not None else None
    if left is None or took is None or saved is None or took + _MIN_HEARING_S <= left:
        return ""
    when = f"the host goes in {max(left, 0.0):.0f} s"
    return f", but the last save took {took:.0f} s, {when}: the work since step {saved.step} may be lost"
