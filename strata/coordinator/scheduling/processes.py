"""What agents last said of ranks' processes, and what these hold of each host: slots and GPUs. Decides nothing; a
restart forgets it, and the agents say it again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from strata.cluster.tasks import Task
from strata.coordinator.scheduling.launch import Launch
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

    def add(self, agent_id: str, num_gpus: int, num_ranks: int = 1) -> None:
        self.slots[agent_id] += num_ranks
        self.gpus[agent_id] += num_gpus * num_ranks


@dataclass(slots=True)
class _OfTask:
    """What follows from the two lists for a task as its record is (`task`) is kept, too: a report of one rank costs as
    much among ten thousand as among ten."""

    running: dict[Place, tuple[str, int]] = field(default_factory=dict)  # → its agent, and how many GPUs it has
    ended: dict[Place, RankEnd] = field(default_factory=dict)
    task: Task | None = None
    ends: dict[int, RankEnd] = field(default_factory=dict)  # by rank, of those that have the task's ranks now
    strays: dict[Place, tuple[str, int]] = field(default_factory=dict)  # run, though their rank is another's by now

    def look_at(self, task: Task) -> None:
        if self.task is not task:
            self.task = task
            self.ends = {place.rank: end for place, end in self.ended.items() if is_current(task, place)}
            self.strays = {place: what for place, what in self.running.items() if _is_stray(task, place)}


class Processes:
    """By task: a question about one task does not look at the others, nor one about ends at those that run."""

    def __init__(self) -> None:
        self._tasks: dict[str, _OfTask] = {}

    def has_ended(self, task_id: str, place: Place) -> bool:
        known = self._tasks.get(task_id)
        return known is not None and place in known.ended

    def note_running(self, task_id: str, place: Place, agent_id: str, num_gpus: int) -> None:
        known = self._tasks.setdefault(task_id, _OfTask())
        known.running[place] = agent_id, num_gpus
        if known.task is not None and _is_stray(known.task, place):
            known.strays[place] = agent_id, num_gpus

    def note_end(self, task_id: str, place: Place, end: RankEnd) -> None:
        known = self._tasks.setdefault(task_id, _OfTask())
        known.running.pop(place, None)
        known.strays.pop(place, None)
        known.ended[place] = end
        if known.task is not None and is_current(known.task, place):
            known.ends[place.rank] = end

    def forget(self, task_id: str, place: Place) -> None:
        """A process of a task that is over has ended: it holds no slot any more."""
        known = self._tasks.get(task_id)
        if known is not None:
            known.running.pop(place, None)
            known.strays.pop(place, None)
            self._tidy(task_id)

    def ends(self, task: Task) -> dict[int, RankEnd]:
        """By rank, of those that have the task's ranks now."""
        known = self._tasks.get(task.task_id)
        if known is None:
            return {}
        known.look_at(task)
        return dict(known.ends)

    def forget_ended(self, task: Task) -> None:
        """Processes that ended and have a successor, or whose task is over, are of no more use; one that still runs
        holds its slot."""
        known = self._tasks.get(task.task_id)
        if known is not None:
            over = task.status.final
            known.ended = {} if over else {place: e for place, e in known.ended.items() if is_current(task, place)}
            known.task = None
            self._tidy(task.task_id)

    def held(self, launches: Iterable[Launch], tasks: Mapping[str, Task], mine: str) -> Held:
        """By the ranks of all tasks but one, and by processes that still run though their rank is another's by now.
        `launches` are those of tasks that are not over."""
        held = Held()
        for launch in launches:
            if launch.task.task_id != mine:
                for agent_id in launch.agents:
                    held.add(agent_id, launch.task.spec.gpus_per_worker, len(launch.ranks_on(agent_id)))
        for task_id, known in self._tasks.items():
            if task_id != mine:
                for agent_id, num_gpus in self._strays(known, tasks.get(task_id)).values():
                    held.add(agent_id, num_gpus)
        return held

    def _strays(self, known: _OfTask, owner: Task | None) -> Mapping[Place, tuple[str, int]]:
        if owner is None:
            return known.running
        known.look_at(owner)
        return known.strays

    def _tidy(self, task_id: str) -> None:
        known = self._tasks[task_id]
        if not known.running and not known.ended:
            del self._tasks[task_id]


def is_current(task: Task, place: Place) -> bool:
    """Whether this process has its rank now."""
    attempt, rank, life = place
    return bool(task.course.placement) and task.attempt == attempt and task.course.life(rank) == life


def _is_stray(task: Task, place: Place) -> bool:
    return task.status.final or not is_current(task, place)


def end_of(report: ag.ProcessReport) -> RankEnd:
    unseen = report.exit_unknown or report.unstarted or report.hindered
    exit_code = None if unseen else report.exit_code
    return from_message(RankEnd, report, exit_code=exit_code, preempted=report.stopped)
