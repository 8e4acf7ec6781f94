"""Looks at all ranks of a task, a slice of them in one turn of the loop: what each has said of its steps. Decides
nothing.
"""

import asyncio
import time
from dataclasses import dataclass, field

from strata.cluster.tasks import Task
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.scheduling.hangs import Hangs
from strata.coordinator.scheduling.progress import Pause, takes_part
from strata.coordinator.scheduling.stragglers import Stragglers, Times

__all__ = ["Sight", "look_at"]

_SLICE = 500  # ranks: to look at them takes 4 ms


@dataclass(slots=True)
class Sight:
    """What the ranks of a task have said. `steady`: all were seen while the task stayed as it is, and nobody came or
    went. `spent_s` is the time of the loop that it took."""

    takes_part: dict[int, bool] = field(default_factory=dict)
    pauses: list[Pause] = field(default_factory=list)
    times: dict[str, Times] = field(default_factory=dict)
    steady: bool = True
    spent_s: float = 0.0


async def look_at(task: Task, coordinator: Coordinator, hangs: Hangs, stragglers: Stragglers) -> Sight:
    state, sight = coordinator.state, Sight()
    group, members = state.membership.groups.get(task.task_id), state.membership.alive_in(task.task_id)
    for start in range(0, len(members), _SLICE):
        if start:
            await asyncio.sleep(0)
        began, part = time.perf_counter(), members[start : start + _SLICE]
        sight.takes_part |= takes_part(part, state.membership.pulses)
        sight.pauses += hangs.pauses(task, part, coordinator.now().monotonic)
        sight.times |= stragglers.times(part)
        sight.spent_s += time.perf_counter() - began
    same_task = state.tasks.tasks.get(task.task_id) is task
    sight.steady = same_task and state.membership.groups.get(task.task_id) is group
    return sight
