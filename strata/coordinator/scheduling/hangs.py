"""Hangs: how long a rank may make no step, who is at fault when none is made, and that it is ended. A rank that stands
still is named first. Once its deadline is over, the agents are asked where the ranks stand; then the one at fault is
chosen, which is journaled with the task's course, so that its agent hears of it whoever restarts meanwhile.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from strata.cluster.members import Worker
from strata.cluster.tasks import Task
from strata.coordinator.scheduling.progress import Pause, ProgressWatch
from strata.coordinator.state.cluster import ClusterState
from strata.protocol.generated import agents_pb2 as ag
from strata.types.ranks import ranks_text
from strata.types.tasks import TaskCourse, worker_id_of

__all__ = ["Hangs"]

_NAMED_S = 60.0  # after which a rank that stands still is named
_ENDED_S = 600.0  # after which it is ended unless the task says otherwise; so long NCCL waits by default, too
_STEPS = 30.0  # and never before so many of its own steps would be done
_PAUSES = 3.0  # nor before so many of its longest pauses that ended by themselves
_ANSWER_S = 4.0
_MAX_LOOKS = 64  # ranks of a task that are asked where they stand


@dataclass(slots=True)
class _Look:
    """One round of asking the ranks of a task where they stand."""

    attempt: int
    word: str
    asked_at: float
    ranks: frozenset[int]
    answers: dict[int, ag.ProcessReport] = field(default_factory=dict)


class Hangs:
    """Of all tasks of one coordinator. `default_s` is for tasks that do not say it: None to learn, 0 for never."""

    def __init__(self, state: ClusterState, default_s: float | None) -> None:
        self._state = state
        self._default_s = default_s
        self._progress = ProgressWatch(state.membership.pulses)
        self._stopped: dict[str, dict[str, float]] = {}  # agent → worker → since when its process is stopped
        self._looks: dict[str, _Look] = {}
        self._asked = 0

    # --- what agents say

    def hear_stopped(self, agent_id: str, worker_ids: Iterable[str], now: float) -> None:
        """All workers of this agent whose processes are stopped by a signal now."""
        before = self._stopped.pop(agent_id, {})
        if stopped := {name: before.get(name, now) for name in worker_ids}:
            self._stopped[agent_id] = stopped

    def hear_standing(self, report: ag.ProcessReport) -> None:
        look = self._looks.get(report.task_id)
        if look is not None and report.look == look.word:
            look.answers[report.rank] = report

    def look_of(self, task: Task, rank: int) -> str:
        """The word by which the agent of this rank is asked where it stands; empty when nobody asks."""
        look = self._looks.get(task.task_id)
        return look.word if look is not None and look.attempt == task.attempt and rank in look.ranks else ""

    def asks(self, task: Task) -> bool:
        """True while agents are to be asked where the ranks of this task stand."""
        return task.task_id in self._looks

    def forget(self, task: Task) -> None:
        self._looks.pop(task.task_id, None)
        self._progress.forget([worker_id_of(task.task_id, rank) for rank in range(task.spec.worker_count)])

    # --- judging

    def pauses(self, task: Task, workers: Iterable[Worker], now: float) -> list[Pause]:
        """How long each of these has made no step. Must be asked often: a step is seen only by two looks."""
        world = task.course.world  # of thousands of numbers: it is not counted for each
        return [self._pause_of(task, worker, world, now) for worker in workers]

    def judge(self, task: Task, pauses: Sequence[Pause], now: float) -> tuple[str, TaskCourse] | None:
        """The task's new reason and course: a rank is named, or ended, or moves again. None when all is as it was.
        `pauses` are those of all ranks whose processes have not ended."""
        if task.course.hung_s is not None:  # its agent ends it
            return None
        excused = any(pause.excused for pause in pauses)  # the others may wait for that one
        least_s = min(_named_s(task), self._given_s(task) or math.inf)  # of all who have no limit of their own
        still = [
            pause
            for pause in pauses
            if pause.stopped or pause.limit_s or (pause.silent_s > least_s and pause.counted and not excused)
        ]
        whole = len(pauses) == task.size
        deadlines = {pause.rank: self._deadline_s(task, pause, whole=whole) for pause in still}
        late = [pause for pause in still if pause.silent_s > deadlines[pause.rank]]
        if not late:
            self._looks.pop(task.task_id, None)
            return _named(task, still, deadlines)
        look = self._ask(task, pauses, now)
        if look is None:
            return None
        del self._looks[task.task_id]
        return self._verdict(task, pauses, late, look)

    def _pause_of(self, task: Task, worker: Worker, world: int, now: float) -> Pause:
        course = task.course
        pause = self._progress.pause_of(worker, world, now) or Pause(rank=worker.rank, step=0)
        since = self._stopped.get(worker.agent_id, {}).get(worker.worker_id)
        if since is not None:
            silent_s = max(pause.silent_s, now - since)
            return pause._replace(stopped=True, excused=False, waiting=False, silent_s=silent_s)
        # The others wait in place for one that took a dead rank's place and has made no step yet.
        new = course.life(pause.rank) > 0 and not (pause.counted or pause.waiting or pause.limit_s)
        return pause._replace(excused=True) if new else pause

    def _deadline_s(self, task: Task, pause: Pause, *, whole: bool) -> float:
        """How long this rank may make no step. Where nothing is set, one that has never told how long a step takes has
        no deadline, nor have the last ranks of a task: they may be storing the result."""
        given = self._given_s(task)
        if given == 0:
            return math.inf
        if limit_s := pause.limit_s or given:
            return limit_s
        if pause.stopped:
            return _ENDED_S
        if not pause.step_time_s or not whole:
            return math.inf
        return max(_ENDED_S, _STEPS * pause.step_time_s, _PAUSES * pause.longest_s)

    def _given_s(self, task: Task) -> float | None:
        """The deadline that is set: None to learn it, 0 for never."""
        return task.spec.hang_timeout_s if task.spec.hang_timeout_s is not None else self._default_s

    def _ask(self, task: Task, pauses: Sequence[Pause], now: float) -> _Look | None:
        """Asks where the ranks stand, once; the answers when all are there, or it takes too long."""
        look = self._looks.get(task.task_id)
        if look is None or look.attempt != task.attempt:
            self._asked += 1
            ranks = [pause.rank for pause in sorted(pauses, key=lambda pause: -pause.silent_s) if not pause.waiting]
            word = f"{self._state.term}.{self._asked}"
            self._looks[task.task_id] = _Look(task.attempt, word, now, frozenset(ranks[:_MAX_LOOKS]))
            return None
        return look if look.answers.keys() >= look.ranks or now - look.asked_at > _ANSWER_S else None

    def _verdict(
        self, task: Task, pauses: Sequence[Pause], late: Sequence[Pause], look: _Look
    ) -> tuple[str, TaskCourse]:
        """Who is at fault: a stopped process, or a section beyond its limit; who has not come to a barrier where others
        wait; who stands in a call that waits for nobody; then whose step is lowest, and who stands still longest."""
        barriers = self._state.barriers
        waited_for = {
            name for one in barriers.open.values() if one.key.task_id == task.task_id for name in barriers.missing(one)
        }
        silent_s, late_ranks = max(pause.silent_s for pause in late), {pause.rank for pause in late}

        def key(pause: Pause) -> tuple[bool, bool, int, bool, int, float, int]:
            answer = look.answers.get(pause.rank)
            waits = 1 if answer is None or not answer.where else 2 * answer.waiting
            absent = worker_id_of(task.task_id, pause.rank) in waited_for
            sure = pause.stopped or (pause.limit_s > 0 and pause.rank in late_ranks)
            return (not sure, not absent, waits, not pause.counted, pause.step, -pause.silent_s, pause.rank)

        # All ranks of a gang stand still for about as long; one that never told a step may be the cause, too.
        suspects = [
            pause for pause in pauses if pause.rank in late_ranks or not pause.counted or pause.silent_s > silent_s / 2
        ]
        blamed = min((pause for pause in suspects if not (pause.excused or pause.waiting)), key=key)
        told = f"rank {blamed.rank} hangs: no step for {silent_s:.0f} s at step {blamed.step}; it is being ended"
        return told, replace(task.course, stuck_rank=blamed.rank, stuck_step=blamed.step, hung_s=round(silent_s, 1))


def _named_s(task: Task) -> float:
    given = task.spec.config.get("hang_timeout_s")  # of older scripts: it has always named, and ended nothing
    return float(given) if isinstance(given, int | float) and given > 0 else _NAMED_S


def _named(task: Task, still: Sequence[Pause], deadlines: Mapping[int, float]) -> tuple[str, TaskCourse] | None:
    """The rank that stands still at the lowest step, the longest of several. Who waits for it without saying so stands
    still too, and is named beside it."""
    named_s = _named_s(task)
    limits = {pause.rank: min(max(named_s, _STEPS * pause.step_time_s), deadlines[pause.rank]) for pause in still}
    late = sorted((p.step, -p.silent_s, p.rank) for p in still if p.silent_s > limits[p.rank])
    if not late:
        cleared = replace(task.course, stuck_rank=None, stuck_step=None)
        return None if task.course.stuck_rank is None else (f"attempt {task.attempt}", cleared)
    (step, silent_s, rank), *others = late
    minutes = int(-silent_s // 60)
    over = f"{minutes} min" if minutes else f"{limits[rank]:.3g} s"
    told = f"rank {rank} has made no step for over {over} (step {step})"
    if others:
        told += f", and neither {'has' if len(others) == 1 else 'have'} {ranks_text(other for _, _, other in others)}"
    if math.isfinite(deadlines[rank]):
        told += f"; who is at fault is ended after {deadlines[rank]:.0f} s"
    return told, replace(task.course, stuck_rank=rank, stuck_step=step)
