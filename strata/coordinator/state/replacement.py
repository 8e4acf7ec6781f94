"""Replaces ranks in place: the dead ones get new processes, the others keep theirs, and the attempt goes on. Pure.

Only for a task whose ranks have all said that they take part. Everything that does not fit is left to the gang restart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from strata.cluster.tasks import Task
from strata.coordinator.state.commands import ChangeTask
from strata.coordinator.state.endings import RankEnd, plan_change
from strata.coordinator.state.placement import Host
from strata.types.tasks import TaskStatus

__all__ = ["plan_part", "plan_replace"]


def plan_part(task: Task, takes_part: Mapping[int, bool]) -> ChangeTask | None:
    """Notes that all ranks of the attempt take part, or that one no longer does. `takes_part` holds what live ranks
    have said. Durable, because a coordinator that starts anew must know it before it hears of a death."""
    in_place = all(takes_part.values()) and (task.course.in_place or len(takes_part) == task.size)
    if task.status is not TaskStatus.RUNNING or in_place == task.course.in_place:
        return None
    return plan_change(task, task.status, task.reason, replace(task.course, in_place=in_place))


def plan_replace(
    task: Task, ends: Mapping[int, RankEnd], recovery: ChangeTask, hosts: Sequence[Host], step: int
) -> ChangeTask | None:
    """The same attempt with new processes for its dead ranks, instead of `recovery`, whose budgets count here, too.
    None when the gang must start anew: it is leaving for the next attempt anyway, a rank does not take part, one has
    finished already and would have to be met again, none is left to take the state from, or a dead one finds no slot.
    `hosts` are without this task's own ranks; `step` is the newest checkpoint's."""
    course = task.course
    survivors = [rank for rank in range(task.size) if rank not in ends]
    finished = any(end.well for end in ends.values())
    if recovery.status is not TaskStatus.RECOVERING or not course.in_place or course.leaving:
        return None
    if finished or not survivors:
        return None
    placement = _place(task, sorted(ends), survivors, hosts)
    if placement is None:
        return None
    lives = tuple(course.life(rank) + (rank in ends) for rank in range(len(placement)))
    # No pause: the losses in a row are bounded as those of a gang are. They count from the newest checkpoint on.
    course = replace(recovery.course, placement=placement, lives=lives, step=max(step, course.step), retry_at=0.0)
    course = replace(course, stuck_rank=None, stuck_step=None, hung_s=None, slow_rank=None)
    names = ", ".join(f"rank {rank} on {placement[rank]}" for rank in sorted(ends))
    died = "; ".join(str(ends[rank]) for rank in sorted(ends))
    reason = f"{died}; replaced in place: {names}, the others go on"
    return plan_change(task, TaskStatus.RUNNING, reason, course)


def _place(task: Task, dead: Sequence[int], survivors: Sequence[int], hosts: Sequence[Host]) -> tuple[str, ...] | None:
    """The placement with a slot for each dead rank: on its own host if that has one, else where most are free."""
    placement = list(task.course.placement)
    spec = task.spec
    free = {host.agent_id: host.room(spec.gpus_per_worker) for host in hosts if host.launcher == spec.launcher}
    for rank in survivors:
        if placement[rank] in free:
            free[placement[rank]] -= 1
    for rank in dead:
        own = placement[rank] if free.get(placement[rank], 0) > 0 else None
        agent_id = own or max(free, key=lambda name: (free[name], name), default="")
        if free.get(agent_id, 0) <= 0:
            return None
        placement[rank] = agent_id
        free[agent_id] -= 1
    return tuple(placement)
