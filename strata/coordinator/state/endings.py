"""What the end of a rank means for its task: whose doing it was, which budget it counts against, and what comes next.

A program's own failures (an exit code, an exception, a crash, a hang, more memory than there is) count against
`max_restarts` and the rule about attempts that bring nothing. Losses (a kill from outside, a host that is gone or
cannot start a rank) have a wider budget of their own. Pure: what is known is an argument, and so are time and chance.
"""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from strata.cluster.tasks import Task
from strata.coordinator.state.commands import ChangeTask
from strata.coordinator.state.now import Now
from strata.coordinator.state.placement import Host, Lacking, plan_gang
from strata.types.faults import MAX_FAULTS, Fault, FaultKind, is_of_peer
from strata.types.ranks import ranks_text
from strata.types.tasks import LOSS_WINDOW_S, MAX_STALLED, TaskCourse, TaskStatus, loss_budget

__all__ = [
    "RankEnd",
    "is_going",
    "parting_of",
    "plan_change",
    "plan_end",
    "plan_leave",
    "plan_restart",
    "plan_start",
    "plan_stopped",
]

_FOLLOWED_EXIT = 75  # of a rank whose place was taken, or that lost a peer
_SHELL_SIGNAL = 128  # a shell exits with this and the number of the signal that killed its program
_BACKOFF_S = 1.0
_MAX_BACKOFF_S = 60.0
# Nobody does these to himself. Others (SIGSEGV, SIGABRT, SIGBUS …) are the program's own crashes.
_FROM_OUTSIDE = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM})
_CRASHES = frozenset({signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGTRAP})
# A program that Python cannot read, that does not take its arguments or is set up wrongly ends the same way every time.
_UNREADABLE = frozenset({"SyntaxError", "IndentationError", "TabError", "ImportError", "ModuleNotFoundError", "usage"})
_UNREADABLE |= {"InvalidConfig"}
_UNREADABLE_EXITS = frozenset({126, 127})  # a shell's word for a program that may not be run, or is not there


@dataclass(frozen=True, slots=True, kw_only=True)
class RankEnd:
    """How a rank's process ended. An unknown exit code is None. `preempted`: it was told to end; `unstarted`: its
    program cannot be started; `hindered`: its host could not start it now; `hung`: its agent ended it because it made
    no step, `suspended` while a signal kept it from running; `exception`: the type that Python named; `left`: its
    script went because it was asked to, and not because its work was done; `finished`: its script had said that it has
    finished; `host_lost`: nobody hears of its host."""

    rank: int
    exit_code: int | None
    message: str = ""
    preempted: bool = False
    unstarted: bool = False
    hindered: bool = False
    out_of_memory: bool = False
    hung: bool = False
    exception: str = ""
    left: bool = False
    finished: bool = False
    host_lost: bool = False
    suspended: bool = False

    @classmethod
    def of_lost_host(cls, rank: int, agent_id: str) -> Self:
        told = f"agent {agent_id} is lost"
        return cls(rank=rank, exit_code=None, message=told, preempted=True, host_lost=True)

    @property
    def well(self) -> bool:
        return self.done and not self.preempted

    @property
    def done(self) -> bool:
        """It did what it was started for, however its process went down."""
        return self.exit_code == 0 or self.crashed_late

    @property
    def crashed_late(self) -> bool:
        """It crashed after its script had said that it has finished: threads of a library do so at the end of a
        process (gloo's: pytorch/pytorch#190489). Nothing would be won by doing its work again."""
        return self.finished and self._signal in _CRASHES and not (self.out_of_memory or self.hung)

    @property
    def followed(self) -> bool:
        """It ended only because another rank had ended, or nobody saw how it ended."""
        return self.exit_code in (None, _FOLLOWED_EXIT) and not (self.preempted or self.hindered or self.unstarted)

    @property
    def killed(self) -> bool:
        """Somebody else ended it by a signal: also the kernel for want of memory, and its agent for a hang."""
        return self.out_of_memory or self.hung or self._signal in _FROM_OUTSIDE

    @property
    def _signal(self) -> int:
        """Which signal ended it, or a program that its shell had started; no signal's number when it was none."""
        code = self.exit_code or 0
        return -code if code < 0 else code - _SHELL_SIGNAL

    @property
    def lost(self) -> bool:
        """Nobody can say that the program failed. Want of memory is its own: it would want as much again."""
        if self.unstarted or self.out_of_memory or self.hung:
            return False
        return self.preempted or self.hindered or self.followed or self.killed

    @property
    def kind(self) -> FaultKind:
        """The same as a word that programs read."""
        told = {
            FaultKind.UNSTARTED: self.unstarted,
            FaultKind.HINDERED: self.hindered,
            FaultKind.HOST_LOST: self.host_lost,
            FaultKind.SUSPENDED: self.hung and self.suspended,
            FaultKind.HANG: self.hung,
            FaultKind.OUT_OF_MEMORY: self.out_of_memory,
            FaultKind.TOLD: self.preempted,
            FaultKind.FOLLOWED: self.exit_code == _FOLLOWED_EXIT,
            FaultKind.UNSEEN: self.exit_code is None,
            FaultKind.KILLED: self.killed,
            FaultKind.CRASH: self.exit_code is not None and self.exit_code < 0,
            FaultKind.EXCEPTION: bool(self.exception),
        }
        return next((kind for kind, holds in told.items() if holds), FaultKind.EXIT)

    def __str__(self) -> str:
        if self.unstarted:
            how = "could not be started"
        elif self.hindered:
            how = "could not be started on its host"
        elif self.hung:
            how = "hung"
        elif self.exit_code is None:
            how = "ended unseen"
        elif self.exit_code < 0:
            how = f"was killed by signal {_named(-self.exit_code)}"
        else:
            how = f"exited with code {self.exit_code}"
        if self.crashed_late:
            how += " after it had finished its work"
        return f"rank {self.rank} {how}" + (f": {self.message}" if self.message else "")


def _named(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal has no name
        return str(number)


def plan_change(task: Task, status: TaskStatus, reason: str, course: TaskCourse | None = None) -> ChangeTask:
    """What the current attempt of a task becomes, and why. Without a `course` it stays as it is."""
    course = course or task.course
    return ChangeTask(task_id=task.task_id, status=status, reason=reason, attempt=task.attempt, course=course)


def is_going(task: Task) -> bool:
    """Whether the task's ranks are to save and go at one agreed step."""
    return task.status is TaskStatus.STOPPING or (task.status is TaskStatus.RUNNING and bool(task.course.leaving))


def parting_of(task: Task, end: RankEnd) -> tuple[bool, str]:
    """Whether a rank whose process ended did as it was asked, so that it is not lost; and what is said about it."""
    if task.status is not TaskStatus.RUNNING:
        return True, f"stopped, since the task is {task.status}"
    if end.done and (end.left or task.course.leaving):
        return True, task.course.leaving or "it was asked to go"
    return False, str(end)


def plan_leave(task: Task, why: str, fault: Fault) -> ChangeTask:
    """All ranks of a running task leave at an agreed step that they save, and the next attempt goes on from there: no
    step is lost, and no budget is touched. What the next attempt looks like is decided when it starts."""
    course = _interrupted(replace(task.course, leaving=why), [replace(fault, attempt=task.attempt)])
    return plan_change(task, TaskStatus.RUNNING, f"{why}: all ranks save and leave", course)


def _interrupted(course: TaskCourse, faults: Sequence[Fault]) -> TaskCourse:
    return replace(course, interruptions=course.interruptions + 1, faults=tuple(faults[:MAX_FAULTS]))


def plan_end(
    task: Task, ends: Mapping[int, RankEnd], step: int, now: Now, chance: float, *, left: bool = False
) -> ChangeTask | None:
    """What the ends of a running task's ranks mean; None while it simply runs on. `step` is the newest committed
    checkpoint's (-1: none), `chance` between 0 and 1 spreads retries. `left`: a rank has said that it goes because the
    task is leaving, and not because its work is done."""
    left = left or any(end.left for end in ends.values())
    if all(end.done and (left or not end.preempted) for end in ends.values()):
        why, stop_at = task.course.leaving, task.course.stop_at
        if len(ends) < task.size:
            return None
        if left or (why and step >= stop_at >= 0):
            why = why or "its ranks were asked to go"
            told = f"{why}: all ranks left" + (f" at step {step}" if step >= 0 else "")
            return plan_change(task, TaskStatus.RECOVERING, told, replace(task.course, leaving=why))
    bad = [ends[rank] for rank in sorted(ends) if not ends[rank].well]
    if not bad:
        late = [str(ends[rank]) for rank in sorted(ends) if ends[rank].crashed_late]
        return plan_change(task, TaskStatus.COMPLETED, "; ".join([f"all {task.size} ranks finished", *late]))
    blamed = _blamed(bad)
    # Whoever lost a peer that had finished well is out of step with it, which is the program's own doing.
    own = not blamed.lost or (blamed.exit_code == _FOLLOWED_EXIT and len(bad) < len(ends))
    course = _counted(task.course, now, own=own, advanced=step > task.course.step)
    course = _interrupted(course, [_fault(task, end) for end in sorted(bad, key=lambda end: end is not blamed)])
    given_up = _given_up(task, blamed, course, own=own)
    if given_up:
        return plan_change(task, TaskStatus.FAILED, given_up, course)
    resume = f"step {step}" if step >= 0 else "the start"
    course = replace(course, retry_at=now.wall + _delay_s(course, chance), leaving="")
    return plan_change(task, TaskStatus.RECOVERING, f"{blamed}; all ranks go back to {resume}", course)


def _blamed(bad: Sequence[RankEnd]) -> RankEnd:
    """The end that the others followed from: one that could not start, one that was killed or told to go, then the
    first that failed; last those that went because of another, or unseen."""

    def key(end: RankEnd) -> tuple[bool, bool, bool, bool, int]:
        late = end.followed or is_of_peer(end.exception)
        return (not end.unstarted, not (end.killed or end.hindered), not end.preempted, late, end.rank)

    return min(bad, key=key)


def _fault(task: Task, end: RankEnd) -> Fault:
    agent_id = task.course.placement[end.rank] if end.rank < len(task.course.placement) else ""
    return Fault(
        kind=end.kind,
        attempt=task.attempt,
        rank=end.rank,
        agent_id=agent_id,
        text=str(end),
        exception=end.exception,
    )


def _counted(course: TaskCourse, now: Now, *, own: bool, advanced: bool) -> TaskCourse:
    """One more failure or loss. A new checkpoint ends every row of bad luck; a loss neither ends nor lengthens the row
    of failures, nor the other way round."""
    stalled, losses, since = (0, 0, now.wall) if advanced else (course.stalled, course.losses, course.losses_since)
    if own:
        stalled = stalled if advanced else stalled + 1
        return replace(course, failures=course.failures + 1, stalled=stalled, losses=losses, losses_since=since)
    if not advanced:
        fresh = losses == 0 or now.wall - since > LOSS_WINDOW_S
        losses, since = (1, now.wall) if fresh else (losses + 1, since)
    return replace(course, preemptions=course.preemptions + 1, stalled=stalled, losses=losses, losses_since=since)


def _given_up(task: Task, blamed: RankEnd, course: TaskCourse, *, own: bool) -> str:
    """Returns why there is no further attempt; empty when there is one."""
    if blamed.unstarted:
        return str(blamed)
    if not own:
        if course.losses > loss_budget(task.spec.max_restarts):
            hours = f"{LOSS_WINDOW_S / 3600:g} hours"
            return f"{blamed}; {course.losses} losses within {hours} brought no new checkpoint"
        return ""
    # In the first attempt only: later the same words may come from a file system that is away.
    first = task.course.failures + task.course.preemptions == 0
    unreadable = blamed.exception in _UNREADABLE or blamed.exit_code in _UNREADABLE_EXITS
    if course.stalled == 1 and first and unreadable:
        return f"{blamed}; it would end the same way again, so it is not restarted"
    if course.failures > task.spec.max_restarts:
        return f"{blamed}; {_used_up(task.spec.max_restarts)}"
    if course.stalled >= MAX_STALLED:
        return f"{blamed}; {course.stalled} attempts in a row brought no new checkpoint"
    return ""


def _used_up(restarts: int) -> str:
    if restarts < 2:
        return "its one restart is used up" if restarts else "it is not to be restarted (max_restarts 0)"
    return f"its {restarts} restarts are used up"


def _delay_s(course: TaskCourse, chance: float) -> float:
    """None after progress or after a first loss; then longer each time, with a bound."""
    row = course.stalled + max(0, course.losses - 1)
    return 0.0 if row == 0 else min(_MAX_BACKOFF_S, _BACKOFF_S * 2 ** min(row - 1, 10)) * (0.5 + chance)


def plan_restart(task: Task, hosts: Sequence[Host], step: int, now: Now) -> ChangeTask | None:
    """The next attempt of a task whose last one has ended everywhere, or the news that it lacks slots; None while it
    has to wait for its turn."""
    if now.wall < task.course.retry_at:
        return None
    plan = _replan(task, hosts)
    if isinstance(plan, Lacking) and task.course.excluded:  # slow is better than not at all
        task = replace(task, course=replace(task.course, excluded=()))
        plan = _replan(task, [replace(host, excluded=False) for host in hosts])
    if isinstance(plan, Lacking):
        return plan_change(task, TaskStatus.RECOVERING, plan.reason)
    return plan_start(task, plan, step)


def _replan(task: Task, hosts: Sequence[Host]) -> tuple[str, ...] | Lacking:
    spec = task.spec
    before, least = task.course.placement, spec.least_workers
    return plan_gang(spec.worker_count, spec.launcher, hosts, before, least=least, gpus=spec.gpus_per_worker)


def plan_start(task: Task, agents: tuple[str, ...], step: int) -> ChangeTask:
    """Starts the next attempt on these agents."""
    attempt, spec = task.attempt + 1, task.spec
    size = f" with {len(agents)} of {spec.worker_count} ranks" if spec.least_workers < spec.worker_count else ""
    resume = f", resumes from step {step}" if step >= 0 else ""
    course = replace(task.course, placement=agents, step=step, stuck_rank=None, stuck_step=None, leaving="")
    course = replace(course, stop_at=-1, stop_agreed=False)
    course = replace(course, in_place=False, lives=(), hung_s=None, slow_rank=None)
    started = plan_change(task, TaskStatus.RUNNING, f"attempt {attempt}{size}{resume}", course)
    return replace(started, attempt=attempt)


def plan_stopped(task: Task, ends: Mapping[int, RankEnd]) -> ChangeTask | None:
    """Ends a stopping task when all its ranks have ended; None before."""
    if len(ends) < task.size:
        return None
    killed = [end.rank for end in ends.values() if end.exit_code == -9]
    note = f"; {ranks_text(killed)} had to be killed" if killed else ""
    return plan_change(task, TaskStatus.STOPPED, f"{task.reason}{note}")
