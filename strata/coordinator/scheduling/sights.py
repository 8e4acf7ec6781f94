"""Looks at what the ranks of all tasks have said of their steps: some of them in each step of the scheduler, because a
look at ten thousand in one would keep a barrier of theirs waiting. Decides nothing.
"""

import math
from collections import deque
from dataclasses import dataclass, field

from strata.cluster.members import Group, Worker
from strata.cluster.tasks import Task
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.scheduling.hangs import Hangs
from strata.coordinator.scheduling.progress import Pause, takes_part
from strata.coordinator.scheduling.stragglers import Stragglers, Times
from strata.types.tasks import TaskStatus

__all__ = ["SLICE", "Sight", "Sights"]

_EVERY_S = 0.5  # a look at all tasks begins, if the one before is over
SLICE = 1_000  # ranks in one step: to look at them takes 4 ms
_PAUSE_S = 0.1  # between two slices, however often the scheduler steps: a look has a twentieth of the loop


@dataclass(slots=True)
class Sight:
    """What the ranks of a task have said, `members` being those who are not looked at yet. It is good as long as the
    task stays as it is and nobody comes or goes."""

    task: Task
    group: Group | None
    members: deque[Worker]
    takes_part: dict[int, bool] = field(default_factory=dict)
    pauses: list[Pause] = field(default_factory=list)
    times: dict[str, Times] = field(default_factory=dict)


class Sights:
    """Of all tasks of one coordinator, one after the other."""

    def __init__(self, coordinator: Coordinator, hangs: Hangs, stragglers: Stragglers) -> None:
        self._coordinator = coordinator
        self._state = coordinator.state
        self._hangs = hangs
        self._stragglers = stragglers
        self._began_at = self._looked_at = -math.inf
        self._unseen: deque[str] = deque()  # tasks
        self._sight: Sight | None = None  # of the first of them

    def begin(self) -> bool:
        """Whether a look at all tasks begins now."""
        now = self._coordinator.now().monotonic
        if self._unseen or now - self._began_at < _EVERY_S:
            return False
        self._began_at = now
        self._unseen.extend(task.task_id for task in self._state.tasks.unfinished())
        return True

    def go_on(self) -> list[Sight]:
        """Looks at the next ranks. Returns the sights that are whole by now, and good."""
        now, left, whole = self._coordinator.now().monotonic, SLICE, list[Sight]()
        if now - self._looked_at < _PAUSE_S:
            return whole
        while self._unseen and left > 0:
            self._looked_at = now
            sight = self._sight = self._sight or self._begin_task(self._unseen[0])
            if sight is not None and self._is_good(sight):
                left -= self._look(sight, left, now)
                if sight.members or not left:  # to judge thousands is the work of a step of its own
                    break
                whole.append(sight)
            self._sight = None
            self._unseen.popleft()
        return whole

    def _begin_task(self, task_id: str) -> Sight | None:
        task, membership = self._state.tasks.tasks.get(task_id), self._state.membership
        if task is None or task.status is not TaskStatus.RUNNING:
            return None
        return Sight(task, membership.groups.get(task_id), deque(membership.alive_in(task_id)))

    def _is_good(self, sight: Sight) -> bool:
        task_id = sight.task.task_id
        same_task = self._state.tasks.tasks.get(task_id) is sight.task
        return same_task and self._state.membership.groups.get(task_id) is sight.group

    def _look(self, sight: Sight, most: int, now: float) -> int:
        """Returns at how many ranks."""
        part = [sight.members.popleft() for _ in range(min(most, len(sight.members)))]
        sight.takes_part |= takes_part(part, self._state.membership.pulses)
        sight.pauses += self._hangs.pauses(sight.task, part, now)
        sight.times |= self._stragglers.times(part)
        return len(part)
