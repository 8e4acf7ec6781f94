"""What agents last said of ranks' processes, and what these hold of each host: slots and GPUs. Decides nothing; a
restart forgets it, and the agents say it again.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from strata.cluster.tasks import Task
from strata.coordinator.state.endings import RankEnd
from strata.protocol.fields import from_message
from strata.protocol.generated import agents_pb2 as ag

__all__ = ["Held", "Place", "Processes", "end_of", "is_current"]


class Place(NamedTuple):
    """One process, ever: a rank's in one attempt, and which of its lives there."""

    attempt: int
    rank: int
    life: int


@dataclass(frozen=True, slots=True)
class Held:
    """How many slots and GPUs are held, by agent."""

    slots: Counter[str] = field(default_factory=Counter)
    gpus: Counter[str] = field(default_factory=Counter)

    def add(self, agent_id: str, num_gpus: int) -> None:
        self.slots[agent_id] += 1
        self.gpus[agent_id] += num_gpus


@dataclass(slots=True)
class _OfTask:
    running: dict[Place, tuple[str, int]] = field(default_factory=dict)  # → its agent, and how many GPUs it has
    ended: dict[Place, RankEnd] = field(default_factory=dict)


class Processes:
    """By task: a question about one task does not look at the others, nor one about ends at those that run."""

    def __init__(self) -> None:
        self._tasks: dict[str, _OfTask] = {}

    def has_ended(self, task_id: str, place: Place) -> bool:
        known = self._tasks.get(task_id)
        return known is not None and place in known.ended

    def note_running(self, task_id: str, place: Place, agent_id: str, num_gpus: int) -> None:
        self._tasks.setdefault(task_id, _OfTask()).running[place] = agent_id, num_gpus

    def note_end(self, task_id: str, place: Place, end: RankEnd) -> None:
        known = self._tasks.setdefault(task_id, _OfTask())
        known.running.pop(place, None)
        known.ended[place] = end

    def forget(self, task_id: str, place: Place) -> None:
        """A process of a task that is over has ended: it holds no slot any more."""
        known = self._tasks.get(task_id)
        if known is not None:
            known.running.pop(place, None)
            self._tidy(task_id)

    def ends(self, task: Task) -> dict[int, RankEnd]:
        """By rank, of those that have the task's ranks now."""
        known = self._tasks.get(task.task_id)
        if known is None:
            return {}
        return {place.rank: end for place, end in known.ended.items() if is_current(task, place)}

    def forget_ended(self, task: Task) -> None:
        """Processes that ended and have a successor, or whose task is over, are of no more use; one that still runs
        holds its slot."""
        known = self._tasks.get(task.task_id)
        if known is not None:
            over = task.status.final
            known.ended = {} if over else {place: e for place, e in known.ended.items() if is_current(task, place)}
            self._tidy(task.task_id)

    def held(self, tasks: Mapping[str, Task], mine: str) -> Held:
        """By the ranks of all tasks but one, and by processes that still run though their rank is another's by now."""
        held = Held()
        for task in tasks.values():
            if task.task_id != mine and not task.status.final:
                for agent_id in task.course.placement:
                    held.add(agent_id, task.spec.gpus_per_worker)
        for task_id, known in self._tasks.items():
            if task_id == mine:
                continue
            owner = tasks.get(task_id)
            for place, (agent_id, num_gpus) in known.running.items():
                if owner is None or owner.status.final or not is_current(owner, place):
                    held.add(agent_id, num_gpus)
        return held

    def _tidy(self, task_id: str) -> None:
        known = self._tasks[task_id]
        if not known.running and not known.ended:
            del self._tasks[task_id]


def is_current(task: Task, place: Place) -> bool:
    """Whether this process has its rank now."""
    attempt, rank, life = place
    return bool(task.course.placement) and task.attempt == attempt and task.course.life(rank) == life


def end_of(report: ag.ProcessReport) -> RankEnd:
    unseen = report.exit_unknown or report.unstarted or report.hindered
    exit_code = None if unseen else report.exit_code
    return from_message(RankEnd, report, exit_code=exit_code, preempted=report.stopped)
